// Kernels for any processor.
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace as2d::kernels {
namespace {

struct Lanes {
  static constexpr const char* kName = "portable";
  struct Sum {
    std::int32_t of[16];
  };
  struct Bytes {
    std::uint8_t of[64];
  };
  struct SignedBytes {
    std::int8_t of[64];
  };

  static Sum Zero() { return {}; }
  static Bytes Load(const std::uint8_t* bytes) {
    Bytes loaded;
    std::memcpy(loaded.of, bytes, sizeof loaded.of);
    return loaded;
  }
  static SignedBytes LoadSigned(const std::int8_t* bytes) {
    SignedBytes loaded;
    std::memcpy(loaded.of, bytes, sizeof loaded.of);
    return loaded;
  }
  static Bytes Offset(const std::int8_t* bytes) {
    Bytes offset;
    for (int i = 0; i < 64; ++i) offset.of[i] = static_cast<std::uint8_t>(bytes[i] + 128);
    return offset;
  }
  static Sum Add(Sum sum, const Bytes& bytes, std::int32_t word) {
    std::int8_t four[4];
    std::memcpy(four, &word, sizeof four);
    for (int i = 0; i < 16; ++i) {
      for (int j = 0; j < 4; ++j) sum.of[i] += bytes.of[4 * i + j] * four[j];
    }
    return sum;
  }
  static Sum AddSigned(Sum sum, std::int32_t word, const SignedBytes& bytes) {
    std::uint8_t four[4];
    std::memcpy(four, &word, sizeof four);
    for (int i = 0; i < 16; ++i) {
      for (int j = 0; j < 4; ++j) sum.of[i] += four[j] * bytes.of[4 * i + j];
    }
    return sum;
  }
  static Sum Both(Sum a, const Sum& b) {
    for (int i = 0; i < 16; ++i) a.of[i] += b.of[i];
    return a;
  }
  static void Store(const Sum& sum, std::int32_t* out) { std::memcpy(out, sum.of, sizeof sum.of); }
};

}  // namespace
}  // namespace as2d::kernels

#include "kernels-inl.h"

namespace as2d::kernels {

const Kernels* Portable() { return &kKernels; }

}  // namespace as2d::kernels
