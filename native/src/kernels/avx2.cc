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
  static constexpr std::size_t kPanelRows = 2;
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
  using Dots = Lanes::Sum;

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
  static Dots Begin(std::int32_t) { return Lanes::Zero(); }
  static void Store(const Dots& dots, std::int32_t* out) { Lanes::Store(dots, out); }
  static void Add(Lanes::Sum& sum, Word word, const Bytes& bytes) {
    Each<4>([&](auto i) {
      sum.of[i] = _mm256_add_epi32(sum.of[i], _mm256_madd_epi16(bytes.of[i], word));
    });
  }
};

using SignedBySigned = Pairing<true, true>;
using SignedByUnsigned = Pairing<true, false>;
using UnsignedBySigned = Pairing<false, true>;

/// With unsigned bytes as small as these, sums of two products fit into the 16 bits of the
/// instruction that multiplies bytes directly.
struct Nibbles {
  static constexpr std::int32_t kOffset = 0;
  struct Dots {
    __m256i of[2];
  };
  using Bytes = Dots;
  using Word = __m256i;

  static Dots Begin(std::int32_t with) {
    return {{_mm256_set1_epi32(with), _mm256_set1_epi32(with)}};
  }
  static void Load(const void* b, Bytes* low, Bytes* high) {
    const __m256i four_bits = _mm256_set1_epi8(15);
    Each<2>([&](auto i) {
      const __m256i both = _mm256_loadu_si256(static_cast<const __m256i*>(b) + i);
      low->of[i] = _mm256_and_si256(both, four_bits);
      high->of[i] = _mm256_and_si256(_mm256_srli_epi16(both, 4), four_bits);
    });
  }
  template <int kStep>
  static void Raise(const void* b, Bytes* bytes) {
    const __m256i two_bits = _mm256_set1_epi8(0x30);
    Each<2>([&](auto i) {
      const __m256i all = _mm256_loadu_si256(static_cast<const __m256i*>(b) + i);
      const __m256i moved =
          kStep < 2 ? _mm256_slli_epi16(all, 4 - 2 * kStep) : _mm256_srli_epi16(all, 2 * kStep - 4);
      bytes->of[i] = _mm256_or_si256(bytes->of[i], _mm256_and_si256(moved, two_bits));
    });
  }
  static Word Spread(std::int32_t word) { return _mm256_set1_epi32(word); }
  static void Add(Dots& dots, Word word, const Bytes& bytes) {
    Each<2>([&](auto i) {
      const __m256i pairs = _mm256_maddubs_epi16(bytes.of[i], word);
      dots.of[i] = _mm256_add_epi32(dots.of[i], _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
    });
  }
  static void Store(const Dots& dots, std::int32_t* out) {
    Each<2>([&](auto i) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(out) + i, dots.of[i]); });
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
