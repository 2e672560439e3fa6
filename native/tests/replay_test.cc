#include "as2d/decode/replay.h"

#include <gtest/gtest.h>

#include <numeric>
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

}  // namespace
}  // namespace as2d
