// Kernels for AVX2.
#include "kernels.h"

#ifdef __AVX2__

#include <immintrin.h>

namespace as2d::kernels {
namespace {

/// Two registers of eight sums. Bytes are widened to 16 bits and multiplied in pairs: the
/// instruction that multiplies bytes directly saturates, and the result must be exact.
struct Lanes {
  static constexpr const char* kName = "avx2";
  struct Sum {
    __m256i low, high;
  };
  struct Bytes {
    __m256i of[4];  // 16 values of 16 bits each: four lanes' worth
  };
  using SignedBytes = Bytes;

  static Sum Zero() { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
  static Bytes Load(const std::uint8_t* bytes) {
    Bytes loaded;
    for (int i = 0; i < 4; ++i) loaded.of[i] = _mm256_cvtepu8_epi16(Sixteen(bytes + 16 * i));
    return loaded;
  }
  static SignedBytes LoadSigned(const std::int8_t* bytes) {
    Bytes loaded;
    for (int i = 0; i < 4; ++i) loaded.of[i] = _mm256_cvtepi8_epi16(Sixteen(bytes + 16 * i));
    return loaded;
  }
  static Bytes Offset(const std::int8_t* bytes) {
    Bytes loaded = LoadSigned(bytes);
    for (__m256i& part : loaded.of) part = _mm256_add_epi16(part, _mm256_set1_epi16(128));
    return loaded;
  }
  static Sum Add(Sum sum, const Bytes& bytes, std::int32_t word) {
    return AddWide(sum, bytes, _mm256_cvtepi8_epi16(_mm_set1_epi32(word)));
  }
  static Sum AddSigned(Sum sum, std::int32_t word, const SignedBytes& bytes) {
    return AddWide(sum, bytes, _mm256_cvtepu8_epi16(_mm_set1_epi32(word)));
  }
  static Sum Both(Sum a, Sum b) {
    return {_mm256_add_epi32(a.low, b.low), _mm256_add_epi32(a.high, b.high)};
  }
  static void Store(Sum sum, std::int32_t* out) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), sum.low);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 8), sum.high);
  }

 private:
  static __m128i Sixteen(const void* bytes) {
    return _mm_loadu_si128(static_cast<const __m128i*>(bytes));
  }
  static Sum AddWide(Sum sum, const Bytes& bytes, __m256i factors) {
    // Pairs of products, 8 to a register: two to a lane of the result.
    const __m256i a = _mm256_madd_epi16(bytes.of[0], factors);
    const __m256i b = _mm256_madd_epi16(bytes.of[1], factors);
    const __m256i c = _mm256_madd_epi16(bytes.of[2], factors);
    const __m256i d = _mm256_madd_epi16(bytes.of[3], factors);
    // hadd works within halves of a register: the permutation puts lanes in order again.
    constexpr int kOrder = 0b11'01'10'00;
    sum.low = _mm256_add_epi32(sum.low, _mm256_permute4x64_epi64(_mm256_hadd_epi32(a, b), kOrder));
    sum.high =
        _mm256_add_epi32(sum.high, _mm256_permute4x64_epi64(_mm256_hadd_epi32(c, d), kOrder));
    return sum;
  }
};

}  // namespace
}  // namespace as2d::kernels

#include "kernels-inl.h"

namespace as2d::kernels {

const Kernels* Avx2() { return &kKernels; }

}  // namespace as2d::kernels

#else

namespace as2d::kernels {

const Kernels* Avx2() { return nullptr; }

}  // namespace as2d::kernels

#endif
