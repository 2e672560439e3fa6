// Loops that are unrolled before anything else.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

namespace as2d::kernels {

/// work(0), work(1), ... with each number a constant: unlike after a loop, compilers then see that
/// an array that is indexed with them need not be in memory.
template <std::size_t kCount, typename Work>
[[gnu::always_inline]] inline void Each(const Work& work) {
  [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>) __attribute__((always_inline)) {
    (work(std::integral_constant<std::size_t, kIndex>()), ...);
  }(std::make_index_sequence<kCount>());
}

}  // namespace as2d::kernels
