// Every set of kernels that this processor can run, against plain arithmetic and against itself:
// a row's numbers must not depend on the rows beside it.
#include "../src/kernels/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "as2d/error.h"

namespace as2d::kernels {
namespace {

using Floats = std::vector<float>;

/// All of n tokens are text.
Choice Any(std::size_t n) {
  return {
      .first = 0, .timestamps = n, .low = n, .high = n, .score = n, .seed = 0, .temperature = 0};
}

class KernelsTest : public testing::TestWithParam<const Kernels*> {
 protected:
  const Kernels& kernels() const { return *GetParam(); }

  Floats Random(std::size_t n, float scale = 1.0F) {
    std::normal_distribution<float> normal(0.0F, scale);
    Floats values(n);
    for (float& value : values) value = normal(random_);
    return values;
  }

  std::mt19937 random_{1};
};

TEST_P(KernelsTest, QuantizesToTheWholeRange) {
  const Floats x = {0.0F, -2.0F, 1.0F, 0.4F, 2.0F / 127.0F, 0.0F};
  std::vector<std::int8_t> q(x.size());
  const QuantizedRow row = kernels().quantize(x.data(), x.size(), q.data());
  EXPECT_FLOAT_EQ(row.scale, 2.0F / 127.0F);
  EXPECT_EQ(q, (std::vector<std::int8_t>{0, -127, 64, 25, 1, 0}));
  EXPECT_EQ(row.sum, -37);
}

TEST_P(KernelsTest, QuantizesNothingToNothing) {
  for (const float tiny : {0.0F, 1e-38F}) {
    const Floats x(33, tiny);
    std::vector<std::int8_t> q(x.size(), 5);
    const QuantizedRow row = kernels().quantize(x.data(), x.size(), q.data());
    EXPECT_EQ(q, std::vector<std::int8_t>(33, 0));
    EXPECT_EQ(row.sum, 0);
    EXPECT_FALSE(std::isnan(row.scale));
  }
}

TEST_P(KernelsTest, WhatIsNotANumberStaysInItsRow) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float strange : {kNan, -kNan, kInfinity, -kInfinity}) {
    Floats x = Random(64);
    for (std::size_t i = 3; i < x.size(); i += 5) x[i] = strange;
    std::vector<std::int8_t> q(x.size());
    const QuantizedRow row = kernels().quantize(x.data(), x.size(), q.data());
    EXPECT_EQ(row.sum, std::accumulate(q.begin(), q.end(), 0)) << "of what was stored";

    constexpr std::size_t kPositions = 300;
    const Floats key = Random(kPositions * 16);
    std::vector<std::uint8_t> key_out(304 * 16);
    std::vector<std::int8_t> value_out(304 * 16);
    Floats scales(32);
    kernels().quantize_cross(key.data(), key.data(), kPositions, 16, 16, key_out.data(),
                             scales.data(), value_out.data(), scales.data() + 16);
    const CrossHead head{key_out.data(), scales.data(), value_out.data(), scales.data() + 16};
    Floats query = Random(2 * 16);
    Floats alone(16);
    kernels().cross_attention(query.data() + 16, 16, 1, 16, 16, kPositions, head, alone.data());
    std::fill_n(query.begin(), 16, strange);
    Floats y(2 * 16);
    kernels().cross_attention(query.data(), 16, 2, 16, 16, kPositions, head, y.data());
    EXPECT_TRUE(std::equal(alone.begin(), alone.end(), y.begin() + 16)) << "bit for bit";

    const Floats nothing(1000, 0.0F);
    for (const Floats& logits : {Floats(1000, strange), Floats(1000, -kInfinity)}) {
      std::int64_t next = -1;
      float log_prob = 0;
      kernels().choose(logits.data(), nothing.data(), logits.size(), Any(logits.size()), &next,
                       &log_prob);
      EXPECT_EQ(next, 0) << "a token of the vocabulary all the same";
    }
  }
}

TEST_P(KernelsTest, LinearIsExactInIntegersForEveryShape) {
  for (const std::size_t outputs : {1U, 15U, 16U, 17U, 50U}) {
    for (const std::size_t k : {4U, 20U, 64U, 300U}) {
      for (const std::size_t rows : {1U, 2U, 3U, 7U, 8U, 9U, 16U, 33U}) {
        const std::size_t panels = (outputs + 15) / 16;
        std::vector<std::int8_t> weight(panels * 16 * k);
        std::vector<std::int8_t> q(rows * k + 64);
        for (std::int8_t& value : q) value = static_cast<std::int8_t>(int(random_() % 255) - 127);
        std::vector<std::vector<int>> plain(outputs, std::vector<int>(k));
        for (std::size_t n = 0; n < outputs; ++n) {
          for (std::size_t i = 0; i < k; ++i) {
            plain[n][i] = static_cast<int>(random_() % 255) - 127;
            weight[n / 16 * 16 * k + i / 4 * 64 + n % 16 * 4 + i % 4] =
                static_cast<std::int8_t>(plain[n][i]);
          }
        }
        std::vector<QuantizedRow> facts(rows);
        for (std::size_t r = 0; r < rows; ++r) {
          facts[r].scale = 1.0F;
          for (std::size_t i = 0; i < k; ++i) facts[r].sum += q[r * k + i];
        }
        const Floats scale(outputs, 1.0F);
        const Floats bias(outputs, 0.5F);
        Floats y(rows * outputs, -1.0F);
        const Layer layer = {weight.data(), scale.data(), bias.data(), outputs, k, false};
        kernels().linear(layer, 0, panels, q.data(), facts.data(), rows, nullptr, y.data());
        for (std::size_t r = 0; r < rows; ++r) {
          for (std::size_t n = 0; n < outputs; ++n) {
            int sum = 0;
            for (std::size_t i = 0; i < k; ++i) sum += plain[n][i] * q[r * k + i];
            ASSERT_EQ(y[r * outputs + n], static_cast<float>(sum) + 0.5F)
                << outputs << " outputs, " << k << " inputs, row " << r << " of " << rows;
          }
        }
      }
    }
  }
}

TEST_P(KernelsTest, LinearFinishesWithBiasGeluAndResidual) {
  constexpr std::size_t kRows = 5;
  constexpr std::size_t kOutputs = 35;
  constexpr std::size_t kInputs = 64;
  std::vector<std::int8_t> weight(48 * kInputs);
  std::vector<std::int8_t> q(kRows * kInputs + 64);
  for (auto* const bytes : {&weight, &q}) {
    for (std::int8_t& value : *bytes) value = static_cast<std::int8_t>(int(random_() % 255) - 127);
  }
  std::vector<QuantizedRow> facts(kRows);
  for (std::size_t r = 0; r < kRows; ++r) {
    facts[r].scale = 0.01F * static_cast<float>(r + 1);
    facts[r].sum = std::accumulate(&q[r * kInputs], &q[(r + 1) * kInputs], 0);
  }
  const Floats scale = Random(kOutputs, 0.01F);
  const Floats bias = Random(kOutputs);
  const Floats residual = Random(kRows * kOutputs);
  Floats y(kRows * kOutputs);
  const Layer layer = {weight.data(), scale.data(), bias.data(), kOutputs, kInputs, true};
  kernels().linear(layer, 0, 3, q.data(), facts.data(), kRows, residual.data(), y.data());
  for (std::size_t r = 0; r < kRows; ++r) {
    for (std::size_t n = 0; n < kOutputs; ++n) {
      int sum = 0;
      for (std::size_t i = 0; i < kInputs; ++i) {
        sum += weight[n / 16 * 16 * kInputs + i / 4 * 64 + n % 16 * 4 + i % 4] * q[r * kInputs + i];
      }
      const double x = double(sum) * facts[r].scale * scale[n] + bias[n];
      const double gelu = x / 2 * (1 + std::erf(x / std::sqrt(2.0)));
      ASSERT_NEAR(y[r * kOutputs + n], gelu + residual[r * kOutputs + n], 2e-6 * (1 + std::abs(x)));
    }
  }
}

TEST_P(KernelsTest, NormQuantizesTheNormOfARow) {
  for (const std::size_t n : {4U, 100U, 512U}) {
    Floats x = Random(n, 3.0F);
    for (float& value : x) value += 7.0F;
    const Floats gamma = Random(n);
    const Floats beta = Random(n);
    double mean = 0;
    double variance = 0;
    for (const float value : x) mean += value / double(n);
    for (const float value : x) variance += (value - mean) * (value - mean) / double(n);
    Floats expected(n);
    for (std::size_t i = 0; i < n; ++i) {
      expected[i] =
          static_cast<float>((x[i] - mean) / std::sqrt(variance + 1e-5) * gamma[i] + beta[i]);
    }
    std::vector<std::int8_t> q(n);
    const QuantizedRow row =
        kernels().norm_quantize(x.data(), {gamma.data(), beta.data()}, n, q.data());
    for (std::size_t i = 0; i < n; ++i) {
      EXPECT_NEAR(row.scale * q[i], expected[i], row.scale * 0.501) << i << " of " << n;
    }
    EXPECT_EQ(row.sum, std::accumulate(q.begin(), q.end(), 0));
  }
}

TEST_P(KernelsTest, SelfAttentionFollowsItsDefinition) {
  constexpr std::size_t kSize = 32;
  constexpr std::size_t kWidth = 64;
  constexpr std::size_t kRows = 20;
  const std::size_t head = 1;
  const Floats query = Random(kRows * kWidth);
  const Floats key = Random(kRows * kSize);
  const Floats value = Random(kRows * kSize);
  std::vector<Place> places(kRows);
  for (std::size_t r = 0; r < kRows; ++r) places[r].at = r;
  Floats y(kRows * kWidth);
  kernels().self_attention(query.data() + head * kSize, kWidth, places.data(), kRows, kWidth, kSize,
                           key.data(), value.data(), 0, y.data() + head * kSize);
  for (std::size_t r = 0; r < kRows; ++r) {
    std::vector<double> weight(r + 1);
    double sum = 0;
    for (std::size_t t = 0; t <= r; ++t) {
      double score = 0;
      for (std::size_t i = 0; i < kSize; ++i) {
        score += double(query[r * kWidth + head * kSize + i]) * key[t * kSize + i];
      }
      sum += weight[t] = std::exp(score / std::sqrt(double(kSize)));
    }
    for (std::size_t i = 0; i < kSize; ++i) {
      double expected = 0;
      for (std::size_t t = 0; t <= r; ++t) expected += weight[t] / sum * value[t * kSize + i];
      ASSERT_NEAR(y[r * kWidth + head * kSize + i], expected, 1e-5);
    }
  }
}

TEST_P(KernelsTest, SelfAttentionSeesASequenceWhereverItLies) {
  constexpr std::size_t kSize = 64;
  constexpr std::size_t kContext = 60;
  constexpr std::size_t kSlot = kContext * kSize;
  const Floats query = Random(kSize);
  for (const std::size_t length : {1U, 2U, 17U, 31U}) {
    Floats key = Random(2 * kSlot);
    Floats value = Random(2 * kSlot);
    Floats whole(kSize);
    const Place run = {.slot = 0, .at = length - 1, .shared = 0, .begin = 0};
    kernels().self_attention(query.data(), 0, &run, 1, kSize, kSize, key.data(), value.data(),
                             kSlot, whole.data());
    for (std::size_t shared = 0; shared < length; ++shared) {
      for (const std::size_t begin : {shared, shared + 1, std::size_t{29}}) {
        if (begin < shared) continue;
        // The same sequence in the other slot: its start, a gap, the rest.
        Floats keys = Random(2 * kSlot);
        Floats values = Random(2 * kSlot);
        const auto lay = [&](const Floats& from, Floats& to) {
          std::copy_n(from.data(), shared * kSize, to.data() + kSlot);
          std::copy_n(from.data() + shared * kSize, (length - shared) * kSize,
                      to.data() + kSlot + begin * kSize);
        };
        lay(key, keys);
        lay(value, values);
        const Place place = {
            .slot = 1, .at = begin + length - shared - 1, .shared = shared, .begin = begin};
        Floats y(kSize);
        kernels().self_attention(query.data(), 0, &place, 1, kSize, kSize, keys.data(),
                                 values.data(), kSlot, y.data());
        ASSERT_EQ(y, whole) << length << ' ' << shared << ' ' << begin << ", bit for bit";
      }
    }
  }
}

TEST_P(KernelsTest, CrossAttentionIsCloseToItsDefinitionAndTheSameInEveryBatch) {
  for (const std::size_t positions : {1U, 16U, 37U, 300U}) {
    for (const std::size_t size : {16U, 64U}) {
      const std::size_t width = 2 * size;
      const std::size_t padded = (positions + 15) / 16 * 16;
      constexpr std::size_t kRows = 9;
      const Floats key = Random(positions * width);
      const Floats value = Random(positions * width);
      const Floats query = Random(kRows * width, 2.0F);
      std::vector<std::uint8_t> key_out(padded * size);
      std::vector<std::int8_t> value_out(padded * size);
      Floats key_scale(size);
      Floats value_scale(size);
      kernels().quantize_cross(key.data() + size, value.data() + size, positions, width, size,
                               key_out.data(), key_scale.data(), value_out.data(),
                               value_scale.data());
      const CrossHead head{key_out.data(), key_scale.data(), value_out.data(), value_scale.data()};
      Floats y(kRows * width);
      kernels().cross_attention(query.data() + size, width, kRows, width, size, positions, head,
                                y.data() + size);
      for (std::size_t r = 0; r < kRows; ++r) {
        std::vector<double> weight(positions);
        double sum = 0;
        for (std::size_t t = 0; t < positions; ++t) {
          double score = 0;
          for (std::size_t i = size; i < width; ++i) {
            score += double(query[r * width + i]) * key[t * width + i];
          }
          sum += weight[t] = std::exp(score / std::sqrt(double(size)));
        }
        for (std::size_t i = size; i < width; ++i) {
          double expected = 0;
          for (std::size_t t = 0; t < positions; ++t) {
            expected += weight[t] / sum * value[t * width + i];
          }
          ASSERT_NEAR(y[r * width + i], expected, 0.08) << positions << ' ' << size;
        }
      }
      for (const std::size_t rows : {1U, 2U, 3U, 4U, 5U}) {
        for (std::size_t first = 0; first + rows <= kRows; ++first) {
          Floats part(rows * width);
          kernels().cross_attention(query.data() + first * width + size, width, rows, width, size,
                                    positions, head, part.data() + size);
          for (std::size_t r = 0; r < rows; ++r) {
            for (std::size_t i = size; i < width; ++i) {
              ASSERT_EQ(part[r * width + i], y[(first + r) * width + i]) << "bit for bit";
            }
          }
        }
      }
    }
  }
}

TEST_P(KernelsTest, CrossAttentionOfEqualValuesIsThatValue) {
  constexpr std::size_t kPositions = 37;
  const Floats key = Random(kPositions * 16);
  const Floats value(kPositions * 16, 0.75F);
  std::vector<std::uint8_t> key_out(48 * 16);
  std::vector<std::int8_t> value_out(48 * 16, 99);  // what lies beyond the end must not count
  Floats scales(32);
  kernels().quantize_cross(key.data(), value.data(), kPositions, 16, 16, key_out.data(),
                           scales.data(), value_out.data(), scales.data() + 16);
  const Floats query = Random(16);
  Floats y(16);
  kernels().cross_attention(query.data(), 16, 1, 16, 16, kPositions,
                            {key_out.data(), scales.data(), value_out.data(), scales.data() + 16},
                            y.data());
  for (const float found : y) EXPECT_NEAR(found, 0.75F, 1e-5F);
}

TEST_P(KernelsTest, ChoosesTheFirstLargestThatIsNotSuppressed) {
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  for (const std::size_t n : {1U, 16U, 19U, 1000U}) {
    Floats logits = Random(n);
    Floats suppress(n, 0.0F);
    const std::size_t last = n - 1;
    logits[last] = 9.0F;
    logits[n / 2] = 9.0F;
    logits[0] = 30.0F;
    if (n > 1) suppress[0] = kNever;
    std::int64_t next = -1;
    float log_prob = 1;
    kernels().choose(logits.data(), suppress.data(), n, Any(n), &next, &log_prob);
    EXPECT_EQ(next, static_cast<std::int64_t>(n / 2));
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) {
      sum += std::exp(double(logits[i]) + suppress[i] - logits[n / 2]);
    }
    EXPECT_NEAR(log_prob, -std::log(sum), 1e-5);
  }
}

// Of 600 tokens the last 100 are timestamps.
TEST_P(KernelsTest, ChoosesATimestampWhereTogetherTheyAreLikelier) {
  constexpr std::size_t n = 600;
  const Floats nothing(n, 0.0F);
  Floats logits(n, -20.0F);
  logits[7] = 2.0F;
  for (std::size_t i = 510; i < 530; ++i) logits[i] = 0.5F;
  logits[515] = 0.6F;
  Choice choice = Any(n);
  choice.timestamps = choice.low = 500;
  std::int64_t next = -1;
  float log_prob = 1;
  const auto choose = [&] {
    kernels().choose(logits.data(), nothing.data(), n, choice, &next, &log_prob);
    return next;
  };
  EXPECT_EQ(choose(), 515) << "20 of e^0.5 are more than e^2";
  EXPECT_NEAR(log_prob, 0.6 - std::log(19 * std::exp(0.5) + std::exp(0.6)), 1e-4)
      << "the text is out of the sum";
  logits[7] = 4.0F;
  EXPECT_EQ(choose(), 7) << "but less than e^4";
  EXPECT_NEAR(log_prob, 4.0 - std::log(19 * std::exp(0.5) + std::exp(0.6) + std::exp(4.0)), 1e-4);
  choice.first = 8;
  EXPECT_EQ(choose(), 515) << "where the text is not allowed";
  choice.low = 520;
  EXPECT_EQ(choose(), 520) << "where the timestamp is not allowed";
  choice.low = choice.high;
  choice.first = 0;
  EXPECT_EQ(choose(), 7) << "where no timestamp is";
  choice.score = 3;
  EXPECT_EQ(choose(), 3);
  EXPECT_NEAR(log_prob, -20 - std::log(std::exp(4.0) + 19 * std::exp(0.5) + std::exp(0.6)), 1e-4);
}

TEST_P(KernelsTest, SamplesTheTemperedDistribution) {
  constexpr std::size_t n = 40;
  Floats suppress(n, -std::numeric_limits<float>::infinity());
  Floats logits(n, 5.0F);
  suppress[3] = suppress[20] = suppress[31] = 0;
  logits[3] = 0.0F;
  logits[20] = 1.0F;
  logits[31] = -0.5F;
  Choice choice = Any(n);
  choice.temperature = 0.5F;
  std::array<int, n> often{};
  constexpr int kTimes = 4000;
  for (int i = 0; i < kTimes; ++i) {
    choice.seed = static_cast<std::uint32_t>(i);
    std::int64_t next = -1;
    float log_prob = 1;
    kernels().choose(logits.data(), suppress.data(), n, choice, &next, &log_prob);
    ++often.at(static_cast<std::size_t>(next));
    const double sum = std::exp(0.0) + std::exp(1.0) + std::exp(-0.5);
    ASSERT_NEAR(log_prob, logits[static_cast<std::size_t>(next)] - std::log(sum), 1e-5)
        << "of the distribution as it is, not tempered";
  }
  const double sum = std::exp(0.0) + std::exp(2.0) + std::exp(-1.0);
  EXPECT_NEAR(often[3], kTimes * std::exp(0.0) / sum, 100);
  EXPECT_NEAR(often[20], kTimes * std::exp(2.0) / sum, 100);
  EXPECT_NEAR(often[31], kTimes * std::exp(-1.0) / sum, 100);
  EXPECT_EQ(often[3] + often[20] + often[31], kTimes) << "never one that is suppressed";
}

// Tiles make the same integers, and what is made of these is the same code.
TEST(KernelSetsTest, TilesGiveTheBitsOfTheRegisters) {
  const std::vector<const Kernels*> sets = Runnable();
  if (sets.back() != Amx()) GTEST_SKIP() << "no tiles here";
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  const auto floats = [&](std::size_t n) {
    Floats values(n);
    for (float& value : values) value = normal(random);
    return values;
  };
  for (const std::size_t rows : {1U, 2U, 5U, 16U, 17U, 31U, 40U, 70U}) {
    for (const std::size_t k : {20U, 64U, 516U}) {
      constexpr std::size_t kOutputs = 101;
      const Floats x = floats(rows * k);
      const Floats scale = floats(kOutputs);
      std::vector<std::int8_t> weight(112 * k);
      for (std::int8_t& value : weight) value = static_cast<std::int8_t>(int(random() % 255) - 127);
      const Layer layer = {weight.data(), scale.data(), nullptr, kOutputs, k, true};
      std::vector<std::int8_t> q(rows * k + 64);
      std::vector<QuantizedRow> facts(rows);
      for (std::size_t r = 0; r < rows; ++r) {
        facts[r] = Amx()->quantize(x.data() + r * k, k, q.data() + r * k);
      }
      Floats y[2] = {Floats(rows * kOutputs), Floats(rows * kOutputs)};
      Amx()->linear(layer, 0, 7, q.data(), facts.data(), rows, nullptr, y[0].data());
      Avx512Vnni()->linear(layer, 0, 7, q.data(), facts.data(), rows, nullptr, y[1].data());
      ASSERT_EQ(y[0], y[1]) << rows << ' ' << k;
    }
  }
  for (const std::size_t positions : {5U, 64U, 300U}) {
    constexpr std::size_t kSize = 48;
    constexpr std::size_t kRows = 21;
    const std::size_t padded = (positions + 15) / 16 * 16;
    const Floats x = floats(std::max(positions, kRows) * kSize);
    std::vector<std::uint8_t> key(padded * kSize);
    std::vector<std::int8_t> value(padded * kSize);
    Floats scales(2 * kSize);
    Amx()->quantize_cross(x.data(), x.data(), positions, kSize, kSize, key.data(), scales.data(),
                          value.data(), scales.data() + kSize);
    const CrossHead head{key.data(), scales.data(), value.data(), scales.data() + kSize};
    for (const auto attend : {&Kernels::attention, &Kernels::cross_attention}) {
      Floats y[2] = {Floats(kRows * kSize), Floats(kRows * kSize)};
      (Amx()->*attend)(x.data(), kSize, kRows, kSize, kSize, positions, head, y[0].data());
      (Avx512Vnni()->*attend)(x.data(), kSize, kRows, kSize, kSize, positions, head, y[1].data());
      ASSERT_EQ(y[0], y[1]) << positions;
    }
  }
}

TEST(KernelSetsTest, AreChosenUpToAName) {
  EXPECT_EQ(BestUpTo("portable").name, std::string("portable"));
  for (const Kernels* const set : Runnable()) EXPECT_EQ(BestUpTo(set->name).name, set->name);
  EXPECT_THROW(BestUpTo("avx3"), Error);
  EXPECT_THROW(BestUpTo(""), Error);
}

// Cores 0 and 1 have what this processor has, as far as it is listed here; core 2 only what every
// processor of its kind has.
TEST(KernelSetsTest, AreThoseThatEveryCoreHas) {
  CpuInfo::Core good;
  good.features = {"sse2",     "avx2",     "fma",         "f16c",     "avx512bw", "avx512vl",
                   "avx512dq", "amx_tile", "avx512_vnni", "amx_int8", "asimd",    "asimddp"};
  CpuInfo::Core plain;
  plain.features = {"sse2", "asimd"};
  CpuInfo::Core between = good;
  between.features.erase("avx512_vnni");
  between.features.erase("amx_int8");
  const CpuInfo info({{0, good}, {1, good}, {2, plain}, {3, between}});
  EXPECT_EQ(Runnable(info, {0, 1}), Runnable());
  EXPECT_EQ(Runnable(info, {0, 1, 2}), std::vector{Portable()});
  EXPECT_EQ(Runnable(info, {0, 1, 9}), Runnable()) << "of core 9 nothing is known";
  std::vector<const Kernels*> common;
  for (const Kernels* const set : Runnable()) {
    if (set != Avx512Vnni() && set != Amx()) common.push_back(set);
  }
  EXPECT_EQ(Runnable(info, {0, 3}), common);
}

INSTANTIATE_TEST_SUITE_P(Sets, KernelsTest, testing::ValuesIn(Runnable()), [](const auto& set) {
  std::string name = set.param->name;
  std::erase(name, '-');
  return name;
});

}  // namespace
}  // namespace as2d::kernels
