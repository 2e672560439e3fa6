// Floating-point numbers of 16 bits.
#pragma once

#include <bit>
#include <cstdint>

namespace as2d::kernels {

/// Exact; of what is not a number, some number.
inline float FloatOfHalf(std::uint16_t half) {
  // Exponent and fraction in the places of a float's, whose exponents count from 112 further down.
  constexpr float kScale = 0x1p112F;
  const auto magnitude = static_cast<std::uint32_t>(half & 0x7fffU) << 13;
  const auto sign = static_cast<std::uint32_t>(half & 0x8000U) << 16;
  return std::bit_cast<float>(
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * kScale) | sign);
}

}  // namespace as2d::kernels
