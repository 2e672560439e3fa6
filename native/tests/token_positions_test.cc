#include "as2d/models/token_positions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace as2d {
namespace {

/// Weights of `heads` heads that look where each row's part is, with some noise.
std::vector<float> Looking(const std::vector<std::size_t>& begins, std::size_t heads,
                           std::size_t positions) {
  std::mt19937 random(3);
  std::uniform_real_distribution<float> noise(0.0F, 0.1F);
  const std::size_t rows = begins.size();
  std::vector<float> weights(rows * heads * positions);
  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t end = row + 1 < rows ? begins[row + 1] : positions;
    for (std::size_t head = 0; head < heads; ++head) {
      float* const line = &weights[(row * heads + head) * positions];
      for (std::size_t t = 0; t < positions; ++t) {
        line[t] = noise(random) + (t >= begins[row] && t < end ? 1.0F : 0.0F);
      }
    }
  }
  return weights;
}

TEST(TokenPositionsTest, FindsWhereTokensBegin) {
  const std::vector<std::size_t> begins = {0, 12, 30, 37, 60};
  for (const std::size_t heads : {1U, 3U}) {
    const auto found = TokenPositions(Looking(begins, heads, 90), begins.size(), heads, 90);
    ASSERT_EQ(found.size(), begins.size());
    for (std::size_t i = 0; i < begins.size(); ++i) {
      EXPECT_NEAR(double(found[i]), double(begins[i]), 1) << i;
    }
  }
}

TEST(TokenPositionsTest, AscendsWhateverItIsGiven) {
  std::mt19937 random(5);
  std::uniform_real_distribution<float> any(0.0F, 1.0F);
  for (const std::size_t rows : {1U, 2U, 9U}) {
    for (const std::size_t positions : {1U, 3U, 4U, 50U}) {
      std::vector<float> weights(rows * 2 * positions);
      for (float& weight : weights) weight = any(random);
      const auto found = TokenPositions(weights, rows, 2, positions);
      ASSERT_EQ(found.size(), rows);
      EXPECT_EQ(found[0], 0U) << "the path begins at the first cell";
      for (std::size_t i = 1; i < rows; ++i) {
        EXPECT_LE(found[i - 1], found[i]);
        EXPECT_LT(found[i], positions);
      }
    }
  }
}

TEST(TokenPositionsTest, EqualWeightsAreNoNumbersToDivideBy) {
  const std::vector<float> weights(4 * 20, 0.05F);
  const auto found = TokenPositions(weights, 4, 1, 20);
  EXPECT_EQ(found.size(), 4U);
}

}  // namespace
}  // namespace as2d
