// The operator Choose as a function, for models whose graphs end with logits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace as2d {

/// A token, and its log-probability.
struct Chosen {
  std::int64_t token = 0;
  float log_probability = 0;
};

/// A line of the operator's `choices`.
inline constexpr std::size_t kChoiceColumns = 6;
using ChoiceLine = std::span<const std::int32_t, kChoiceColumns>;

/// What the operator chooses of one row of logits, which is not empty; `suppress` is as long. See
/// kernels/operators.h.
Chosen ChooseToken(std::span<const float> logits, std::span<const float> suppress, ChoiceLine line,
                   float temperature);

}  // namespace as2d
