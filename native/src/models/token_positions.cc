#include "as2d/models/token_positions.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace as2d {
namespace {

constexpr std::size_t kMedian = 7;

/// The weights of one head over all rows: every position's to mean 0 and deviation 1.
void Standardize(std::vector<float>* head, std::size_t rows, std::size_t positions) {
  std::vector<float> mean(positions, 0.0F);
  std::vector<float> inverse(positions, 0.0F);
  const float count = static_cast<float>(rows);
  const auto each = [&](const auto& work) {  // along the rows, which are side by side
    for (std::size_t row = 0; row < rows; ++row) {
      float* const line = head->data() + row * positions;
      for (std::size_t t = 0; t < positions; ++t) work(line[t], t);
    }
  };
  each([&](float value, std::size_t t) { mean[t] += value / count; });
  each([&](float value, std::size_t t) {
    inverse[t] += (value - mean[t]) * (value - mean[t]) / count;
  });
  for (float& value : inverse) value = value > 1e-20F ? 1.0F / std::sqrt(value) : 0.0F;
  each([&](float& value, std::size_t t) { value = (value - mean[t]) * inverse[t]; });
}

/// Of seven numbers at a time, in as many places as there are: what a network of comparisons leaves
/// in the middle (Devillard 1998), which the compiler makes instructions for many places of.
void AddMedians(const std::array<const float*, kMedian>& around, std::size_t count, float* sum) {
  constexpr std::size_t kPairs[][2] = {{0, 5}, {0, 3}, {1, 6}, {2, 4}, {0, 1}, {3, 5}, {2, 6},
                                       {2, 3}, {3, 6}, {4, 5}, {1, 4}, {1, 3}, {3, 4}};
  for (std::size_t t = 0; t < count; ++t) {
    float of[kMedian];
    for (std::size_t i = 0; i < kMedian; ++i) of[i] = around[i][t];
    for (const auto& [a, b] : kPairs) {
      const float low = std::min(of[a], of[b]);
      of[b] = std::max(of[a], of[b]);
      of[a] = low;
    }
    sum[t] += of[kMedian / 2];
  }
}

/// Adds the medians of seven along `line`, the ends mirrored, to `sum`.
void AddSmoothed(std::span<const float> line, std::vector<float>* padded, float* sum) {
  constexpr std::size_t kHalf = kMedian / 2;
  const std::size_t count = line.size();
  if (count <= kHalf) {  // nothing to mirror
    for (std::size_t t = 0; t < count; ++t) sum[t] += line[t];
    return;
  }
  padded->resize(count + 2 * kHalf);
  std::ranges::copy(line, padded->begin() + kHalf);
  for (std::size_t i = 1; i <= kHalf; ++i) {
    (*padded)[kHalf - i] = line[i];
    (*padded)[kHalf + count - 1 + i] = line[count - 1 - i];
  }
  std::array<const float*, kMedian> around{};
  for (std::size_t i = 0; i < kMedian; ++i) around.at(i) = padded->data() + i;
  AddMedians(around, count, sum);
}

/// The first position of every row on the path from the first cell to the last with the largest
/// sum of `gains` [rows, positions].
std::vector<std::size_t> BestPath(std::span<const float> gains, std::size_t rows,
                                  std::size_t positions) {
  enum Move : std::uint8_t { kBoth, kRow, kPosition };
  std::vector<Move> moves(rows * positions, kBoth);
  std::vector<float> before(positions);
  std::vector<float> best(positions);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t t = 0; t < positions; ++t) {
      float most = 0;
      Move move = kBoth;
      if (row == 0) {
        if (t > 0) most = best[t - 1], move = kPosition;
      } else if (t == 0) {
        most = before[0], move = kRow;
      } else {
        const float both = before[t - 1];
        const float down = before[t];
        const float along = best[t - 1];
        most = both;
        if (down > most) most = down, move = kRow;
        if (along > most) most = along, move = kPosition;
      }
      best[t] = most + gains[row * positions + t];
      moves[row * positions + t] = move;
    }
    std::swap(before, best);
  }
  std::vector<std::size_t> first(rows, 0);
  std::size_t row = rows - 1;
  std::size_t t = positions - 1;
  while (true) {
    first[row] = t;
    if (row == 0 && t == 0) return first;
    const Move move = moves[row * positions + t];
    if (move != kPosition) --row;
    if (move != kRow) --t;
  }
}

}  // namespace

std::vector<std::size_t> TokenPositions(std::span<const float> weights, std::size_t rows,
                                        std::size_t heads, std::size_t positions) {
  std::vector<float> gains(rows * positions, 0.0F);
  std::vector<float> head(rows * positions);
  std::vector<float> padded;
  for (std::size_t i = 0; i < heads; ++i) {
    for (std::size_t row = 0; row < rows; ++row) {
      const auto line = weights.subspan((row * heads + i) * positions, positions);
      std::ranges::copy(line, head.begin() + static_cast<std::ptrdiff_t>(row * positions));
    }
    Standardize(&head, rows, positions);
    for (std::size_t row = 0; row < rows; ++row) {
      AddSmoothed(std::span(head).subspan(row * positions, positions), &padded,
                  gains.data() + row * positions);
    }
  }
  return BestPath(gains, rows, positions);
}

}  // namespace as2d
