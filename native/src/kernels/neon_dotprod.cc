// Kernels for AArch64 with the dot product extension.
#include "kernels.h"

#ifdef __ARM_FEATURE_DOTPROD

#include <arm_neon.h>

namespace as2d::kernels {
namespace {

/// Four registers of four sums. The instruction multiplies signed by signed bytes, so unsigned
/// bytes give up the 128 and its share is added back.
struct Lanes {
  static constexpr const char* kName = "neon-dotprod";
  struct Sum {
    int32x4_t of[4];
  };
  struct SignedBytes {
    int8x16_t of[4];
  };
  using Bytes = SignedBytes;  // with 128 taken off

  static Sum Zero() {
    const int32x4_t zero = vdupq_n_s32(0);
    return {{zero, zero, zero, zero}};
  }
  static Bytes Load(const std::uint8_t* bytes) {
    Bytes loaded;
    for (int i = 0; i < 4; ++i) {
      loaded.of[i] = vreinterpretq_s8_u8(veorq_u8(vld1q_u8(bytes + 16 * i), vdupq_n_u8(128)));
    }
    return loaded;
  }
  static SignedBytes LoadSigned(const std::int8_t* bytes) {
    SignedBytes loaded;
    for (int i = 0; i < 4; ++i) loaded.of[i] = vld1q_s8(bytes + 16 * i);
    return loaded;
  }
  static Bytes Offset(const std::int8_t* bytes) { return LoadSigned(bytes); }
  static Sum Add(Sum sum, const Bytes& bytes, std::int32_t word) {
    const int8x16_t factors = vreinterpretq_s8_s32(vdupq_n_s32(word));
    const int32x4_t share = vshlq_n_s32(vdotq_s32(vdupq_n_s32(0), factors, vdupq_n_s8(1)), 7);
    for (int i = 0; i < 4; ++i) {
      sum.of[i] = vdotq_s32(vaddq_s32(sum.of[i], share), bytes.of[i], factors);
    }
    return sum;
  }
  static Sum AddSigned(Sum sum, std::int32_t word, const SignedBytes& bytes) {
    const int8x16_t factors =
        vreinterpretq_s8_u8(veorq_u8(vreinterpretq_u8_s32(vdupq_n_s32(word)), vdupq_n_u8(128)));
    for (int i = 0; i < 4; ++i) {
      const int32x4_t share = vshlq_n_s32(vdotq_s32(vdupq_n_s32(0), bytes.of[i], vdupq_n_s8(1)), 7);
      sum.of[i] = vdotq_s32(vaddq_s32(sum.of[i], share), bytes.of[i], factors);
    }
    return sum;
  }
  static Sum Both(Sum a, const Sum& b) {
    for (int i = 0; i < 4; ++i) a.of[i] = vaddq_s32(a.of[i], b.of[i]);
    return a;
  }
  static void Store(const Sum& sum, std::int32_t* out) {
    for (int i = 0; i < 4; ++i) vst1q_s32(out + 4 * i, sum.of[i]);
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
