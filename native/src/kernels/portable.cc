// Kernels for any processor.
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace as2d::kernels {
namespace {

struct Lanes {
  static constexpr const char* kName = "portable";
  static constexpr std::size_t kSumRows = 48;
  static constexpr std::size_t kAttentionRows = 4;
  static constexpr std::size_t kBlockRows = 2;
  static constexpr std::size_t kBlockPanels = 1;
  static constexpr std::size_t kChains = 1;
  static constexpr std::size_t kPanelRows = 2;
  struct Sum {
    std::int32_t of[16];
  };

  static Sum Zero() { return {}; }
  static Sum Both(Sum a, const Sum& b) {
    for (int i = 0; i < 16; ++i) a.of[i] += b.of[i];
    return a;
  }
  static void Store(const Sum& sum, std::int32_t* out) { std::memcpy(out, sum.of, sizeof sum.of); }
};

template <typename OfWord, typename OfBytes>
struct Pairing {
  static constexpr std::int32_t kOffset = 0;
  using Dots = Lanes::Sum;
  struct Bytes {
    OfBytes of[64];
  };
  struct Word {
    OfWord of[4];
  };
  static Bytes Load(const void* b) {
    Bytes bytes;
    std::memcpy(bytes.of, b, sizeof bytes.of);
    return bytes;
  }
  static Word Spread(std::int32_t word) {
    Word four;
    std::memcpy(four.of, &word, sizeof four.of);
    return four;
  }
  static Dots Begin(std::int32_t) { return Lanes::Zero(); }
  static void Store(const Dots& dots, std::int32_t* out) { Lanes::Store(dots, out); }
  static void Add(Lanes::Sum& sum, const Word& word, const Bytes& bytes) {
    for (int i = 0; i < 16; ++i) {
      for (int j = 0; j < 4; ++j) sum.of[i] += word.of[j] * bytes.of[4 * i + j];
    }
  }
};

using SignedBySigned = Pairing<std::int8_t, std::int8_t>;
using SignedByUnsigned = Pairing<std::int8_t, std::uint8_t>;
using UnsignedBySigned = Pairing<std::uint8_t, std::int8_t>;

struct Nibbles : SignedByUnsigned {
  static void Load(const void* b, Bytes* low, Bytes* high) {
    const Bytes both = SignedByUnsigned::Load(b);
    for (int i = 0; i < 64; ++i) {
      low->of[i] = both.of[i] & 15;
      high->of[i] = both.of[i] >> 4;
    }
  }
  template <int kStep>
  static void Raise(const void* b, Bytes* bytes) {
    const Bytes bits = SignedByUnsigned::Load(b);
    for (int i = 0; i < 64; ++i) {
      bytes->of[i] = static_cast<std::uint8_t>(bytes->of[i] | (bits.of[i] >> (2 * kStep) & 3) << 4);
    }
  }
  static Dots Begin(std::int32_t with) {
    Dots dots;
    for (std::int32_t& dot : dots.of) dot = with;
    return dots;
  }
};

}  // namespace
}  // namespace as2d::kernels

#include "kernels-inl.h"

namespace as2d::kernels {

const Kernels* Portable() { return &kKernels; }

}  // namespace as2d::kernels
