// Sums of AVX-512 with VNNI, for kernels-inl.h.

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace as2d::kernels {
namespace {

struct Lanes {
#ifdef __AMX_INT8__
  static constexpr const char* kName = "amx";
  static constexpr std::size_t kSumRows = 32;
  static constexpr std::size_t kAttentionRows = 16;
#else
  static constexpr const char* kName = "avx512vnni";
  static constexpr std::size_t kSumRows = 48;
  static constexpr std::size_t kAttentionRows = 12;
#endif
  // 24 of 32 registers; the rest holds what is being multiplied.
  static constexpr std::size_t kBlockRows = 12;
  static constexpr std::size_t kBlockPanels = 2;
  static constexpr std::size_t kChains = 8;
  // Two registers each, of integers and of what is made of them, leave eight.
  static constexpr std::size_t kPanelRows = 12;
  using Sum = __m512i;

  static Sum Zero() { return _mm512_setzero_si512(); }
  static Sum Both(Sum a, Sum b) { return _mm512_add_epi32(a, b); }
  static void Store(Sum sum, std::int32_t* out) { _mm512_storeu_si512(out, sum); }
};

// The instruction in its own words: of the compiler's function for it, some compilers make moves
// and stores of every sum.
[[gnu::always_inline]] inline void DotProduct(__m512i& sum, __m512i unsigned_bytes,
                                              __m512i signed_bytes) {
  __m512i result = sum;
  asm("vpdpbusd %2, %1, %0" : "+v"(result) : "v"(unsigned_bytes), "v"(signed_bytes));
  sum = result;
}

struct Pairing {
  static constexpr std::int32_t kOffset = 0;
  using Bytes = __m512i;
  using Word = __m512i;
  using Dots = __m512i;
  static Dots Begin(std::int32_t with) { return _mm512_set1_epi32(with); }
  static void Store(Dots dots, std::int32_t* out) { Lanes::Store(dots, out); }
  static Bytes Load(const void* b) { return _mm512_loadu_si512(b); }
  static Word Spread(std::int32_t word) { return _mm512_set1_epi32(word); }
};

struct SignedByUnsigned : Pairing {
  [[gnu::always_inline]] static void Add(__m512i& sum, Word word, Bytes bytes) {
    DotProduct(sum, bytes, word);
  }
};

struct UnsignedBySigned : Pairing {
  [[gnu::always_inline]] static void Add(__m512i& sum, Word word, Bytes bytes) {
    DotProduct(sum, word, bytes);
  }
};

// One of the two has to be unsigned.
struct SignedBySigned : SignedByUnsigned {
  static constexpr std::int32_t kOffset = 128;
  static Bytes Load(const void* b) {
    return _mm512_xor_si512(_mm512_loadu_si512(b), _mm512_set1_epi8(-128));
  }
};

struct Nibbles : SignedByUnsigned {
  [[gnu::always_inline]] static void Load(const void* b, Bytes* low, Bytes* high) {
    const __m512i four_bits = _mm512_set1_epi8(15);
    const __m512i both = _mm512_loadu_si512(b);
    *low = _mm512_and_si512(both, four_bits);
    *high = _mm512_and_si512(_mm512_srli_epi16(both, 4), four_bits);
  }
  template <int kStep>
  [[gnu::always_inline]] static void Raise(const void* b, Bytes* bytes) {
    const __m512i all = _mm512_loadu_si512(b);
    const __m512i moved =
        kStep < 2 ? _mm512_slli_epi16(all, 4 - 2 * kStep) : _mm512_srli_epi16(all, 2 * kStep - 4);
    *bytes = _mm512_or_si512(*bytes, _mm512_and_si512(moved, _mm512_set1_epi8(0x30)));
  }
};

}  // namespace
}  // namespace as2d::kernels
