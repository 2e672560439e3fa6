// Kernels for AArch64 with the dot product extension.
#include "kernels.h"

#ifdef __ARM_FEATURE_DOTPROD

#include <arm_neon.h>

#include "each.h"

namespace as2d::kernels {
namespace {

/// Four registers of four sums. The instruction multiplies signed by signed bytes, so unsigned
/// bytes give up 128 and its share is added back.
struct Lanes {
  static constexpr const char* kName = "neon-dotprod";
  static constexpr std::size_t kSumRows = 48;
  static constexpr std::size_t kAttentionRows = 4;
  static constexpr std::size_t kBlockRows = 6;
  static constexpr std::size_t kBlockPanels = 1;
  static constexpr std::size_t kChains = 4;
  static constexpr std::size_t kPanelRows = 2;
  struct Sum {
    int32x4_t of[4];
  };

  static Sum Zero() {
    const int32x4_t zero = vdupq_n_s32(0);
    return {{zero, zero, zero, zero}};
  }
  static Sum Both(Sum a, const Sum& b) {
    Each<4>([&](auto i) { a.of[i] = vaddq_s32(a.of[i], b.of[i]); });
    return a;
  }
  static void Store(const Sum& sum, std::int32_t* out) {
    Each<4>([&](auto i) { vst1q_s32(out + 4 * i, sum.of[i]); });
  }
};

inline int8x16_t Less128(int8x16_t unsigned_bytes) {
  return veorq_s8(unsigned_bytes, vdupq_n_s8(-128));
}

/// 128 times the sum of each four bytes.
inline int32x4_t Share(int8x16_t bytes) {
  return vshlq_n_s32(vdotq_s32(vdupq_n_s32(0), bytes, vdupq_n_s8(1)), 7);
}

struct SignedBySigned {
  static constexpr std::int32_t kOffset = 0;
  struct Bytes {
    int8x16_t of[4];
  };
  using Word = int8x16_t;
  using Dots = Lanes::Sum;

  static Dots Begin(std::int32_t) { return Lanes::Zero(); }
  static void Store(const Dots& dots, std::int32_t* out) { Lanes::Store(dots, out); }
  static Bytes Load(const void* b) {
    Bytes bytes;
    Each<4>([&](auto i) { bytes.of[i] = vld1q_s8(static_cast<const std::int8_t*>(b) + 16 * i); });
    return bytes;
  }
  static Word Spread(std::int32_t word) { return vreinterpretq_s8_s32(vdupq_n_s32(word)); }
  static void Add(Lanes::Sum& sum, Word word, const Bytes& bytes) {
    Each<4>([&](auto i) { sum.of[i] = vdotq_s32(sum.of[i], bytes.of[i], word); });
  }
};

/// Small enough to be signed as well.
struct Nibbles : SignedBySigned {
  static void Load(const void* b, Bytes* low, Bytes* high) {
    Each<4>([&](auto i) {
      const uint8x16_t both = vld1q_u8(static_cast<const std::uint8_t*>(b) + 16 * i);
      low->of[i] = vreinterpretq_s8_u8(vandq_u8(both, vdupq_n_u8(15)));
      high->of[i] = vreinterpretq_s8_u8(vshrq_n_u8(both, 4));
    });
  }
  template <int kStep>
  static void Raise(const void* b, Bytes* bytes) {
    Each<4>([&](auto i) {
      const uint8x16_t all = vld1q_u8(static_cast<const std::uint8_t*>(b) + 16 * i);
      const uint8x16_t moved = vshlq_u8(all, vdupq_n_s8(4 - 2 * kStep));
      const int8x16_t bits = vreinterpretq_s8_u8(vandq_u8(moved, vdupq_n_u8(0x30)));
      bytes->of[i] = vorrq_s8(bytes->of[i], bits);
    });
  }
  static Dots Begin(std::int32_t with) {
    Dots dots;
    Each<4>([&](auto i) { dots.of[i] = vdupq_n_s32(with); });
    return dots;
  }
};

struct SignedByUnsigned : SignedBySigned {
  static Bytes Load(const void* b) {
    Bytes bytes = SignedBySigned::Load(b);
    Each<4>([&](auto i) { bytes.of[i] = Less128(bytes.of[i]); });
    return bytes;
  }
  static void Add(Lanes::Sum& sum, Word word, const Bytes& bytes) {
    const int32x4_t share = Share(word);
    Each<4>([&](auto i) { sum.of[i] = vdotq_s32(vaddq_s32(sum.of[i], share), bytes.of[i], word); });
  }
};

struct UnsignedBySigned : SignedBySigned {
  static Word Spread(std::int32_t word) { return Less128(SignedBySigned::Spread(word)); }
  static void Add(Lanes::Sum& sum, Word word, const Bytes& bytes) {
    Each<4>([&](auto i) {
      sum.of[i] = vdotq_s32(vaddq_s32(sum.of[i], Share(bytes.of[i])), bytes.of[i], word);
    });
  }
};

}  // namespace
}  // namespace as2d::kernels

#include "kernels-inl.h"

namespace as2d::kernels {

const Kernels* NeonDotProd() { return &kKernels; }

}  // namespace as2d::kernels

#else

namespace as2d::kernels {

const Kernels* NeonDotProd() { return nullptr; }

}  // namespace as2d::kernels

#endif
