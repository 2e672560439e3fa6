#include "as2d/decode/replay.h"

#include <gtest/gtest.h>

#include <numeric>
#include <utility>
#include <vector>

namespace as2d {
namespace {

using Tokens = std::vector<TokenId>;

constexpr TokenId kEnd = 999;

std::size_t Steps(const Tokens& text, const Tokens& draft, std::size_t budget) {
  return ReplaySteps(text, draft, kEnd, budget, std::make_shared<const TokenKeys>());
}

Tokens Count(std::size_t count) {
  Tokens tokens(count);
  std::iota(tokens.begin(), tokens.end(), 1);
  return tokens;
}

TEST(ReplayTest, ARightDraftCommitsTheBudgetAndOneMoreInEveryStep) {
  // One token of the prompt, 18 more and the end: 19 in steps of 5.
  EXPECT_EQ(Steps(Count(19), Count(19), 4), 4U);
  EXPECT_EQ(Steps(Count(19), Count(19), 31), 1U);
}

TEST(ReplayTest, WithoutADraftEveryTokenIsAStep) {
  EXPECT_EQ(Steps(Count(19), {}, 8), 19U);
  EXPECT_EQ(Steps(Count(19), Tokens(40, 500), 8), 19U);
  EXPECT_EQ(Steps(Count(19), Count(19), 0), 19U);
}

TEST(ReplayTest, AWrongTokenCostsTheRestOfItsStep) {
  Tokens draft = Count(19);
  draft[3] = 500;  // the fourth: two are accepted before it, and the target's own takes its place
  EXPECT_EQ(Steps(Count(19), draft, 4), 5U);
  draft[4] = draft[5] = 500;
  EXPECT_EQ(Steps(Count(19), draft, 4), 6U);
}

TEST(ReplayTest, ADraftThatGoesOnBeyondTheTextCostsNothing) {
  EXPECT_EQ(Steps(Count(19), Count(60), 4), 4U);
}

TEST(ReplayTest, NoTextIsNoStep) { EXPECT_EQ(Steps({}, Count(3), 4), 0U); }

std::vector<std::pair<std::size_t, std::size_t>> Trace(const Tokens& text, const Tokens& draft) {
  std::vector<std::pair<std::size_t, std::size_t>> found;
  for (const auto& [place, run] : ReplayTrace(text, draft, kEnd, TokenKeys())) {
    found.emplace_back(place, run);
  }
  return found;
}

using Places = std::vector<std::pair<std::size_t, std::size_t>>;

TEST(ReplayTest, ATraceTellsPlaceAndRunOfEveryPrefix) {
  EXPECT_EQ(Trace(Count(3), Count(3)), (Places{{1, 3}, {2, 2}, {3, 1}}));  // the end is one too
  EXPECT_EQ(Trace({1, 2, 3, 4}, {1, 2, 500, 4}), (Places{{1, 1}, {2, 0}, {3, 2}, {4, 1}}));
  EXPECT_EQ(Trace({}, Count(3)), Places{});
}

TEST(ReplayTest, ATraceOfAWrongDraftFindsNothing) {
  const Places found = Trace(Count(4), {500, 500, 500, 500});
  ASSERT_EQ(found.size(), 4U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(found[i].second, 0U);
}

TEST(ReplayTest, ATraceFollowsTheAlignerPastWhatOnlyTheDraftSays) {
  // The draft has two words more in the middle: the third prefix is placed behind them.
  const Places found = Trace({1, 2, 3, 4, 5, 6}, {1, 2, 500, 501, 3, 4, 5, 6});
  EXPECT_EQ(found[1], (std::pair<std::size_t, std::size_t>{2, 0}));
  EXPECT_EQ(found[3], (std::pair<std::size_t, std::size_t>{6, 3}));
}

}  // namespace
}  // namespace as2d
