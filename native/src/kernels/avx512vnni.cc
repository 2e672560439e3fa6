// Kernels for AVX-512 with VNNI.
#include "kernels.h"

#ifdef __AVX512VNNI__

#include <immintrin.h>

namespace as2d::kernels {
namespace {

struct Lanes {
  static constexpr const char* kName = "avx512vnni";
  using Sum = __m512i;
  using Bytes = __m512i;
  using SignedBytes = __m512i;

  static Sum Zero() { return _mm512_setzero_si512(); }
  static Bytes Load(const std::uint8_t* bytes) { return _mm512_loadu_si512(bytes); }
  static SignedBytes LoadSigned(const std::int8_t* bytes) { return _mm512_loadu_si512(bytes); }
  static Bytes Offset(const std::int8_t* bytes) {
    return _mm512_xor_si512(_mm512_loadu_si512(bytes), _mm512_set1_epi8(-128));
  }
  static Sum Add(Sum sum, Bytes bytes, std::int32_t word) {
    return _mm512_dpbusd_epi32(sum, bytes, _mm512_set1_epi32(word));
  }
  static Sum AddSigned(Sum sum, std::int32_t word, SignedBytes bytes) {
    return _mm512_dpbusd_epi32(sum, _mm512_set1_epi32(word), bytes);
  }
  static Sum Both(Sum a, Sum b) { return _mm512_add_epi32(a, b); }
  static void Store(Sum sum, std::int32_t* out) { _mm512_storeu_si512(out, sum); }
};

}  // namespace
}  // namespace as2d::kernels

#include "kernels-inl.h"

namespace as2d::kernels {

const Kernels* Avx512Vnni() { return &kKernels; }

}  // namespace as2d::kernels

#else

namespace as2d::kernels {

const Kernels* Avx512Vnni() { return nullptr; }

}  // namespace as2d::kernels

#endif
