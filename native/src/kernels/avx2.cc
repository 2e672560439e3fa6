// Kernels for AVX2.
#include "kernels.h"

#ifdef __AVX2__

#include <immintrin.h>

#include "each.h"

namespace as2d::kernels {
namespace {

/// Four registers of eight sums, two for each lane of the result. Bytes are widened to 16 bits and
/// multiplied in pairs: the instruction that multiplies bytes directly saturates, and the result
/// must be exact.
struct Lanes {
  static constexpr const char* kName = "avx2";
  static constexpr std::size_t kSumRows = 48;
  static constexpr std::size_t kAttentionRows = 4;
  static constexpr std::size_t kBlockRows = 2;
  static constexpr std::size_t kBlockPanels = 1;
  static constexpr std::size_t kChains = 2;
  struct Sum {
    __m256i of[4];
  };

  static Sum Zero() {
    const __m256i zero = _mm256_setzero_si256();
    return {{zero, zero, zero, zero}};
  }
  static Sum Both(Sum a, const Sum& b) {
    Each<4>([&](auto i) { a.of[i] = _mm256_add_epi32(a.of[i], b.of[i]); });
    return a;
  }
  static void Store(const Sum& sum, std::int32_t* out) {
    // The addition works within halves of a register: the permutation puts lanes in order again.
    constexpr int kOrder = 0b11'01'10'00;
    for (int i = 0; i < 2; ++i) {
      const __m256i pairs = _mm256_hadd_epi32(sum.of[2 * i], sum.of[2 * i + 1]);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 8 * i),
                          _mm256_permute4x64_epi64(pairs, kOrder));
    }
  }
};

struct Wide {
  __m256i of[4];  // 16 values of 16 bits each: four lanes' worth
};

inline __m128i Quarter(const void* b, int i) {
  return _mm_loadu_si128(static_cast<const __m128i*>(b) + i);
}

/// The bytes of one operand and the word of the other, each signed or unsigned.
template <bool kSignedWord, bool kSignedBytes>
struct Pairing {
  static constexpr std::int32_t kOffset = 0;
  using Bytes = Wide;
  using Word = __m256i;

  static Bytes Load(const void* b) {
    Wide wide;
    Each<4>([&](auto i) {
      wide.of[i] =
          kSignedBytes ? _mm256_cvtepi8_epi16(Quarter(b, i)) : _mm256_cvtepu8_epi16(Quarter(b, i));
    });
    return wide;
  }
  static Word Spread(std::int32_t word) {
    const __m128i four = _mm_set1_epi32(word);
    return kSignedWord ? _mm256_cvtepi8_epi16(four) : _mm256_cvtepu8_epi16(four);
  }
  static void Add(Lanes::Sum& sum, Word word, const Bytes& bytes) {
    Each<4>([&](auto i) {
      sum.of[i] = _mm256_add_epi32(sum.of[i], _mm256_madd_epi16(bytes.of[i], word));
    });
  }
};

using SignedBySigned = Pairing<true, true>;
using SignedByUnsigned = Pairing<true, false>;
using UnsignedBySigned = Pairing<false, true>;

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
