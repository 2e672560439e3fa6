// Layers of weights in blocks and grouped attention, for every set of kernels that this processor
// can run, against plain arithmetic and against itself: a row's numbers must not depend on the rows
// beside it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "../src/kernels/half.h"
#include "../src/kernels/kernels.h"

namespace as2d::kernels {
namespace {

using Floats = std::vector<float>;

/// Some positive halves, as bits: powers of two and a half more.
std::uint16_t SmallHalf(std::size_t random) {
  return static_cast<std::uint16_t>(((8 + random % 3) << 10) | (random & 0x200U));
}

/// Rows in blocks and the memory that holds them.
class Blocked {
 public:
  Blocked(const Kernels& kernels, const Floats& x, std::size_t k, const RmsNorm& norm = {})
      : q_(x.size()),
        scale_(x.size() / kBlock),
        total_(x.size() / kBlock),
        offset_(x.size() / kBlock),
        halves_(2 * x.size() / kBlock) {
    for (std::size_t row = 0; row < x.size() / k; ++row) {
      kernels.quantize_blocks(x.data() + row * k, norm, k, rows(k), row);
    }
  }
  BlockedRows rows(std::size_t k) {
    return {.count = q_.size() / k,
            .q = q_.data(),
            .scale = scale_.data(),
            .total = total_.data(),
            .offset = offset_.data(),
            .halves = halves_.data()};
  }
  const std::vector<std::int8_t>& q() const { return q_; }
  const Floats& scale() const { return scale_; }
  const Floats& total() const { return total_; }

 private:
  std::vector<std::int8_t> q_;
  Floats scale_;
  Floats total_;
  std::vector<std::int32_t> offset_;
  std::vector<std::int32_t> halves_;
};

class BlockKernelsTest : public testing::TestWithParam<const Kernels*> {
 protected:
  const Kernels& kernels() const { return *GetParam(); }

  Floats Random(std::size_t n, float scale = 1.0F) {
    std::normal_distribution<float> normal(0.0F, scale);
    Floats values(n);
    for (float& value : values) value = normal(random_);
    return values;
  }

  /// A layer of random weights, and what each of them is.
  struct Weights {
    std::vector<std::uint8_t> packed;
    std::vector<double> plain;  // [16 * panels, k]
  };

  void Put(std::vector<std::uint8_t>* to, std::size_t at, std::uint16_t half) {
    std::memcpy(to->data() + at, &half, sizeof half);
  }

  Weights Make(std::size_t bits, std::size_t panels, std::size_t k) {
    if (bits == 6) return SixBits(panels, k);
    return bits == 4 ? FourBits(panels, k) : EightBits(panels, k);
  }

  Weights FourBits(std::size_t panels, std::size_t k) {
    constexpr std::size_t kBytes = 2368;
    Weights made;
    made.packed.resize(panels * (k / 256) * kBytes);
    made.plain.resize(panels * 16 * k);
    for (std::uint8_t& byte : made.packed) byte = static_cast<std::uint8_t>(random_());
    for (std::size_t panel = 0; panel < panels; ++panel) {
      for (std::size_t group = 0; group < k / 256; ++group) {
        const std::size_t at = (panel * (k / 256) + group) * kBytes;
        for (std::size_t lane = 0; lane < 16; ++lane) {
          const std::uint16_t unit = SmallHalf(random_());
          const std::uint16_t least = SmallHalf(random_());
          Put(&made.packed, at + 2 * lane, unit);
          Put(&made.packed, at + 32 + 2 * lane, least);
          for (std::size_t i = 0; i < 256; ++i) {
            const std::uint8_t scale = made.packed[at + 64 + i / 32 * 16 + lane] &= 63;
            const std::uint8_t minimum = made.packed[at + 64 + 128 + i / 32 * 16 + lane] &= 63;
            const std::uint8_t both = made.packed[at + 64 + 256 + i / 8 * 64 + lane * 4 + i % 4];
            const int nibble = i % 8 < 4 ? both & 15 : both >> 4;
            made.plain[(panel * 16 + lane) * k + group * 256 + i] =
                double(FloatOfHalf(unit)) * scale * nibble - double(FloatOfHalf(least)) * minimum;
          }
        }
      }
    }
    return made;
  }

  Weights SixBits(std::size_t panels, std::size_t k) {
    constexpr std::size_t kBytes = 3392;
    Weights made;
    made.packed.resize(panels * (k / 256) * kBytes);
    made.plain.resize(panels * 16 * k);
    for (std::uint8_t& byte : made.packed) byte = static_cast<std::uint8_t>(random_());
    for (std::size_t panel = 0; panel < panels; ++panel) {
      for (std::size_t group = 0; group < k / 256; ++group) {
        const std::size_t at = (panel * (k / 256) + group) * kBytes;
        for (std::size_t lane = 0; lane < 16; ++lane) {
          const std::uint16_t unit = SmallHalf(random_());
          Put(&made.packed, at + 2 * lane, unit);
          for (std::size_t i = 0; i < 256; ++i) {
            const auto scale = static_cast<std::int8_t>(made.packed[at + 64 + i / 16 * 16 + lane]);
            const std::size_t lower = at + 64 + 256;
            const std::uint8_t both = made.packed[lower + i / 8 * 64 + lane * 4 + i % 4];
            const int nibble = i % 8 < 4 ? both & 15 : both >> 4;
            const std::uint8_t four = made.packed[lower + 2048 + i / 16 * 64 + lane * 4 + i % 4];
            const int upper = four >> (i / 4 % 4 * 2) & 3;
            made.plain[(panel * 16 + lane) * k + group * 256 + i] =
                double(FloatOfHalf(unit)) * scale * (nibble + 16 * upper - 32);
          }
        }
      }
    }
    return made;
  }

  Weights EightBits(std::size_t panels, std::size_t k) {
    constexpr std::size_t kBytes = 1088;
    Weights made;
    made.packed.resize(panels * (k / 64) * kBytes);
    made.plain.resize(panels * 16 * k);
    for (std::uint8_t& byte : made.packed) byte = static_cast<std::uint8_t>(random_() % 255 + 129);
    for (std::size_t panel = 0; panel < panels; ++panel) {
      for (std::size_t group = 0; group < k / 64; ++group) {
        const std::size_t at = (panel * (k / 64) + group) * kBytes;
        for (std::size_t lane = 0; lane < 16; ++lane) {
          for (std::size_t block = 0; block < 2; ++block) {
            Put(&made.packed, at + (block * 16 + lane) * 2, SmallHalf(random_()));
          }
          for (std::size_t i = 0; i < 64; ++i) {
            std::uint16_t scale = 0;
            std::memcpy(&scale, &made.packed[at + (i / 32 * 16 + lane) * 2], sizeof scale);
            const auto weight =
                static_cast<std::int8_t>(made.packed[at + 64 + i / 4 * 64 + lane * 4 + i % 4]);
            made.plain[(panel * 16 + lane) * k + group * 64 + i] =
                double(FloatOfHalf(scale)) * weight;
          }
        }
      }
    }
    return made;
  }

  std::mt19937 random_{1};
};

TEST(HalfTest, IsWhatTheStandardSays) {
  EXPECT_EQ(FloatOfHalf(0x3c00), 1.0F);
  EXPECT_EQ(FloatOfHalf(0xc000), -2.0F);
  EXPECT_EQ(FloatOfHalf(0x3555), 0.333251953125F);
  EXPECT_EQ(FloatOfHalf(0x7bff), 65504.0F);
  EXPECT_EQ(FloatOfHalf(0x0400), std::ldexp(1.0F, -14));
  EXPECT_EQ(FloatOfHalf(0x8001), -std::ldexp(1.0F, -24)) << "a denormal one";
  EXPECT_EQ(FloatOfHalf(0), 0.0F);
}

TEST_P(BlockKernelsTest, EachBlockHasItsScale) {
  Floats x = Random(96, 3.0F);
  std::fill_n(x.begin() + 32, 32, 0.0F);
  x[3] = -20.0F;
  const Blocked blocked(kernels(), x, 96);
  for (std::size_t block = 0; block < 3; ++block) {
    float most = 0;
    int sum = 0;
    for (std::size_t i = block * 32; i < block * 32 + 32; ++i) {
      most = std::max(most, std::abs(x[i]));
      sum += blocked.q()[i];
    }
    for (std::size_t i = block * 32; i < block * 32 + 32; ++i) {
      EXPECT_NEAR(blocked.q()[i] * blocked.scale()[block], x[i], most / 127 * 0.501F);
    }
    EXPECT_FLOAT_EQ(blocked.scale()[block], most / 127);
    EXPECT_FLOAT_EQ(blocked.total()[block], most / 127 * static_cast<float>(sum));
  }
  EXPECT_EQ(blocked.q()[3], -127);
}

TEST_P(BlockKernelsTest, BlocksAreOfTheNormIfThereIsOne) {
  constexpr std::size_t kWidth = 320;
  Floats x = Random(kWidth, 5.0F);
  const Floats gamma = Random(kWidth);
  double squares = 0;
  for (const float value : x) squares += double(value) * value / kWidth;
  Floats normed(kWidth);
  for (std::size_t i = 0; i < kWidth; ++i) {
    normed[i] = static_cast<float>(x[i] / std::sqrt(squares + 0.5) * gamma[i]);
  }
  const Blocked blocked(kernels(), x, kWidth, {gamma.data(), 0.5F});
  for (std::size_t i = 0; i < kWidth; ++i) {
    const float scale = blocked.scale()[i / kBlock];
    EXPECT_NEAR(blocked.q()[i] * scale, normed[i], scale * 0.502F);
  }
}

TEST_P(BlockKernelsTest, LayersAreWhatTheirWeightsSay) {
  for (const std::size_t bits : {4U, 6U, 8U}) {
    for (const std::size_t k : {256U, 768U}) {
      for (const std::size_t outputs : {1U, 16U, 37U}) {
        const std::size_t panels = (outputs + 15) / 16;
        const Weights weights = Make(bits, panels, k);
        constexpr std::size_t kRows = 3;
        const Floats x = Random(kRows * k);
        const Floats bias = Random(outputs);
        const Floats residual = Random(kRows * outputs);
        Blocked blocked(kernels(), x, k);
        const BlockLayer layer = {weights.packed.data(), bits, bias.data(), outputs, k, false};
        Floats y(kRows * outputs);
        kernels().block_linear(layer, 0, panels, blocked.rows(k), residual.data(), y.data());
        for (std::size_t r = 0; r < kRows; ++r) {
          // What the row is in 8 bits: its own blocks, alone.
          const Blocked own(
              kernels(),
              Floats(x.begin() + std::ptrdiff_t(r * k), x.begin() + std::ptrdiff_t((r + 1) * k)),
              k);
          for (std::size_t n = 0; n < outputs; ++n) {
            double sum = double(bias[n]) + residual[r * outputs + n];
            double size = 1;
            for (std::size_t i = 0; i < k; ++i) {
              const double product =
                  weights.plain[n * k + i] * own.q()[i] * own.scale()[i / kBlock];
              sum += product;
              size += std::abs(product);
            }
            ASSERT_NEAR(y[r * outputs + n], sum, 1e-6 * size)
                << bits << " bits, " << k << " inputs, output " << n << " of row " << r;
          }
        }
      }
    }
  }
}

TEST_P(BlockKernelsTest, OneHalfGatesTheOther) {
  constexpr std::size_t kInputs = 256;
  constexpr std::size_t kOutputs = 20;
  constexpr std::size_t kRows = 2;
  const Weights weights = Make(8, 4, kInputs);
  Blocked blocked(kernels(), Random(kRows * kInputs, 300.0F), kInputs);
  Floats plain(kRows * 64);
  kernels().block_linear({weights.packed.data(), 8, nullptr, 64, kInputs, false}, 0, 4,
                         blocked.rows(kInputs), nullptr, plain.data());
  Floats y(kRows * kOutputs);
  kernels().block_linear({weights.packed.data(), 8, nullptr, kOutputs, kInputs, true}, 0, 4,
                         blocked.rows(kInputs), nullptr, y.data());
  for (std::size_t r = 0; r < kRows; ++r) {
    for (std::size_t n = 0; n < kOutputs; ++n) {
      const std::size_t at = r * 64 + n / 16 * 32 + n % 16;
      const double gate = plain[at];
      const double expected = gate / (1 + std::exp(-gate)) * plain[at + 16];
      EXPECT_NEAR(y[r * kOutputs + n], expected, 1e-5 * (1 + std::abs(expected)));
    }
  }
}

TEST_P(BlockKernelsTest, ARowIsTheSameInEveryBatch) {
  constexpr std::size_t kInputs = 512;
  constexpr std::size_t kOutputs = 32;
  constexpr std::size_t kRows = 33;
  const Floats x = Random(kRows * kInputs);
  for (const std::size_t bits : {4U, 6U, 8U}) {
    for (const bool gated : {false, true}) {
      const Weights weights = Make(bits, gated ? 4 : 2, kInputs);
      const BlockLayer layer = {weights.packed.data(), bits, nullptr, kOutputs, kInputs, gated};
      const std::size_t panels = gated ? 4 : 2;
      Floats whole(kRows * kOutputs);
      Blocked all(kernels(), x, kInputs);
      kernels().block_linear(layer, 0, panels, all.rows(kInputs), nullptr, whole.data());
      for (const std::size_t rows : {1U, 2U, 3U, 8U, 13U, 32U}) {
        for (std::size_t first = 0; first + rows <= kRows; first += rows) {
          const auto from = x.begin() + std::ptrdiff_t(first * kInputs);
          Blocked part(kernels(), Floats(from, from + std::ptrdiff_t(rows * kInputs)), kInputs);
          Floats y(rows * kOutputs);
          kernels().block_linear(layer, 0, panels, part.rows(kInputs), nullptr, y.data());
          ASSERT_TRUE(
              std::equal(y.begin(), y.end(), whole.begin() + std::ptrdiff_t(first * kOutputs)))
              << bits << " bits, rows " << first << " and " << rows - 1 << " more, bit for bit";
        }
      }
    }
  }
}

TEST_P(BlockKernelsTest, WhatIsNotANumberStaysInItsRow) {
  constexpr std::size_t kInputs = 256;
  Floats x = Random(2 * kInputs);
  for (const float strange : {std::nanf(""), HUGE_VALF, -HUGE_VALF}) {
    for (std::size_t i = 0; i < kInputs; i += 7) x[i] = strange;
    for (const std::size_t bits : {4U, 6U, 8U}) {
      const Weights weights = Make(bits, 1, kInputs);
      const BlockLayer layer = {weights.packed.data(), bits, nullptr, 16, kInputs, false};
      Floats both(32);
      Blocked two(kernels(), x, kInputs);
      kernels().block_linear(layer, 0, 1, two.rows(kInputs), nullptr, both.data());
      Floats alone(16);
      Blocked one(kernels(), Floats(x.begin() + kInputs, x.end()), kInputs);
      kernels().block_linear(layer, 0, 1, one.rows(kInputs), nullptr, alone.data());
      EXPECT_TRUE(std::equal(alone.begin(), alone.end(), both.begin() + 16)) << "bit for bit";
    }
  }
}

TEST_P(BlockKernelsTest, TurnsEachPairByItsAngle) {
  constexpr std::size_t kHalf = 40;
  const Floats x = Random(2 * kHalf);
  Floats cosine(kHalf);
  Floats sine(kHalf);
  for (std::size_t i = 0; i < kHalf; ++i) {
    cosine[i] = std::cos(0.1F * static_cast<float>(i));
    sine[i] = std::sin(0.1F * static_cast<float>(i));
  }
  Floats y(2 * kHalf);
  kernels().rotate(x.data(), cosine.data(), sine.data(), kHalf, y.data());
  for (std::size_t i = 0; i < kHalf; ++i) {
    EXPECT_NEAR(y[i], x[i] * cosine[i] - x[kHalf + i] * sine[i], 1e-6);
    EXPECT_NEAR(y[kHalf + i], x[kHalf + i] * cosine[i] + x[i] * sine[i], 1e-6);
  }
}

// Rows at many places, of which each sees what the next one does not, are what each head of each is
// alone, by the kernel whose definition another test has.
TEST_P(BlockKernelsTest, HeadsThatShareKeysAreWhatEachIsAlone) {
  constexpr std::size_t kSize = 48;
  constexpr std::size_t kContext = 150;
  constexpr std::size_t kHeads = 3;
  constexpr std::size_t kSlot = kContext * kSize;
  const std::vector<Place> places = {
      {.slot = 0, .at = 0, .shared = 0, .begin = 0},
      {.slot = 1, .at = 149, .shared = 0, .begin = 0},
      {.slot = 1, .at = 100, .shared = 30, .begin = 70},
      {.slot = 0, .at = 64, .shared = 33, .begin = 33},
      {.slot = 1, .at = 90, .shared = 0, .begin = 90},
  };
  const Floats key = Random(2 * kSlot);
  const Floats value = Random(2 * kSlot);
  constexpr std::size_t kWidth = kHeads * kSize;
  const Floats query = Random(places.size() * kWidth);
  Floats y(places.size() * kWidth);
  kernels().grouped_attention(query.data(), kWidth, kHeads, places.data(), places.size(), kWidth,
                              kSize, key.data(), value.data(), kSlot, y.data());
  for (std::size_t r = 0; r < places.size(); ++r) {
    for (std::size_t head = 0; head < kHeads; ++head) {
      const std::size_t at = r * kWidth + head * kSize;
      Floats plain(kSize);
      kernels().self_attention(query.data() + at, kWidth, &places[r], 1, kWidth, kSize, key.data(),
                               value.data(), kSlot, plain.data());
      Floats alone(kSize);
      kernels().grouped_attention(query.data() + at, kWidth, 1, &places[r], 1, kWidth, kSize,
                                  key.data(), value.data(), kSlot, alone.data());
      for (std::size_t i = 0; i < kSize; ++i) {
        EXPECT_NEAR(y[at + i], plain[i], 1e-5) << "row " << r << ", head " << head;
        EXPECT_EQ(y[at + i], alone[i]) << "bit for bit";
      }
    }
  }
}

TEST_P(BlockKernelsTest, ASequenceIsTheSameWhereverItLies) {
  constexpr std::size_t kSize = 64;
  constexpr std::size_t kLength = 75;
  constexpr std::size_t kSlot = 400 * kSize;
  const Floats query = Random(kSize);
  const Floats key = Random(kSlot);
  const Floats value = Random(kSlot);
  const Place run = {.slot = 0, .at = kLength - 1, .shared = 0, .begin = 0};
  Floats whole(kSize);
  kernels().grouped_attention(query.data(), 0, 1, &run, 1, kSize, kSize, key.data(), value.data(),
                              kSlot, whole.data());
  for (const std::size_t shared : {0U, 1U, 31U, 32U, 50U, 74U}) {
    for (const std::size_t begin : {shared, shared + 1, std::size_t{200}}) {
      Floats keys = Random(kSlot);
      Floats values = Random(kSlot);
      const auto lay = [&](const Floats& from, Floats& to) {
        std::copy_n(from.data(), shared * kSize, to.data());
        std::copy_n(from.data() + shared * kSize, (kLength - shared) * kSize,
                    to.data() + begin * kSize);
      };
      lay(key, keys);
      lay(value, values);
      const Place place = {
          .slot = 0, .at = begin + kLength - shared - 1, .shared = shared, .begin = begin};
      Floats y(kSize);
      kernels().grouped_attention(query.data(), 0, 1, &place, 1, kSize, kSize, keys.data(),
                                  values.data(), kSlot, y.data());
      ASSERT_EQ(y, whole) << shared << ' ' << begin << ", bit for bit";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, BlockKernelsTest, testing::ValuesIn(Runnable()),
                         [](const auto& set) {
                           std::string name = set.param->name;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace as2d::kernels
