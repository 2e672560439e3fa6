// What the drivers of this project's own decoders share. Private to the models' sources.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>

#include "as2d/decode/models.h"
#include "as2d/error.h"
#include "as2d/runtime/tensor.h"

namespace as2d {

/// Throws Error unless there is a row, and all of them lie within the caches of a context.
inline void RequireFit(std::span<const Row> rows, int context) {
  const auto fits = [&](const Row& row) {
    return row.position >= 0 && row.position < context && row.at >= 0 && row.at < context;
  };
  if (rows.empty() || rows.size() > static_cast<std::size_t>(context) ||
      !std::ranges::all_of(rows, fits)) {
    throw Error("a step of " + std::to_string(rows.size()) + " rows does not fit the context of " +
                std::to_string(context));
  }
}

/// Moves [from, from + count) of a slot to `to` < from, in a cache of [slots, heads, context, head
/// size].
inline void MoveCached(const Tensor& cache, int slot, int from, int to, int count) {
  const auto heads = static_cast<std::ptrdiff_t>(cache.shape()[1]);
  const auto size = static_cast<std::ptrdiff_t>(cache.shape()[3]);
  const auto one = static_cast<std::ptrdiff_t>(cache.shape()[2]) * size;
  float* head = cache.values<float>().data() + slot * heads * one;
  for (std::ptrdiff_t h = 0; h < heads; ++h, head += one) {
    std::copy_n(head + from * size, count * size, head + to * size);
  }
}

}  // namespace as2d
