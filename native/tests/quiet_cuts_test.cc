#include "as2d/models/quiet_cuts.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace as2d {
namespace {

TEST(QuietCutsTest, LeavesShortAudioWhole) {
  EXPECT_EQ(QuietCuts({}, 1000), (std::vector<std::size_t>{0}));
  EXPECT_EQ(QuietCuts(std::vector<float>(1000), 1000), (std::vector<std::size_t>{1000}));
}

TEST(QuietCutsTest, CutsInThePause) {
  std::vector<float> samples(16000 * 12, 0.5F);
  // A pause in the last third of the longest piece, and a deeper one too early to be of use.
  std::fill_n(samples.begin() + 16000 * 2, 1600, 0.0F);
  std::fill_n(samples.begin() + 16000 * 8, 1600, 0.01F);
  const std::vector<std::size_t> ends = QuietCuts(samples, 16000 * 9);
  ASSERT_EQ(ends.size(), 2U);
  EXPECT_GE(ends[0], 16000U * 8);
  EXPECT_LE(ends[0], 16000U * 8 + 1600);
  EXPECT_EQ(ends[1], samples.size());
}

TEST(QuietCutsTest, KeepsTheLengthAndCoversEverything) {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    std::vector<float> samples(random() % 200000);
    for (float& sample : samples) sample = static_cast<float>(random() % 100) / 100;
    const std::size_t longest = 3200 + random() % 60000;
    std::size_t begin = 0;
    for (const std::size_t end : QuietCuts(samples, longest)) {
      EXPECT_LE(end - begin, longest);
      EXPECT_TRUE(end > begin || samples.empty());
      begin = end;
    }
    EXPECT_EQ(begin, samples.size());
  }
}

}  // namespace
}  // namespace as2d
