#include "as2d/decode/verifier.h"

#include <gtest/gtest.h>

#include <vector>

namespace as2d {
namespace {

using Tokens = std::vector<TokenId>;
constexpr TokenId kEnd = 99;

struct Outcome {
  Verdict verdict;
  Tokens tokens;
};

Outcome Of(const Tokens& candidates, const Tokens& next, std::size_t room = 100) {
  Outcome outcome;
  outcome.verdict = Verify(candidates, next, kEnd, room, &outcome.tokens);
  return outcome;
}

TEST(VerifierTest, GoesAloneWithoutCandidates) {
  const Outcome outcome = Of({}, {5});
  EXPECT_EQ(outcome.tokens, (Tokens{5}));
  EXPECT_EQ(outcome.verdict.accepted, 0U);
  EXPECT_FALSE(outcome.verdict.finished);
}

TEST(VerifierTest, TakesAllThatAgreeAndOneOfItsOwn) {
  const Outcome outcome = Of({1, 2, 3}, {1, 2, 3, 4});
  EXPECT_EQ(outcome.tokens, (Tokens{1, 2, 3, 4}));
  EXPECT_EQ(outcome.verdict.accepted, 3U);
}

TEST(VerifierTest, StopsAtTheFirstDifference) {
  const Outcome outcome = Of({1, 7, 3}, {1, 2, 3, 4});
  EXPECT_EQ(outcome.tokens, (Tokens{1, 2})) << "what follows a wrong candidate means nothing";
  EXPECT_EQ(outcome.verdict.accepted, 1U);
}

TEST(VerifierTest, IgnoresPaddedRows) { EXPECT_EQ(Of({1}, {1, 2, 3, 3}).tokens, (Tokens{1, 2})); }

TEST(VerifierTest, CommitsNothingAfterTheEnd) {
  Outcome outcome = Of({1, kEnd, 3}, {1, kEnd, 3, 4});
  EXPECT_EQ(outcome.tokens, (Tokens{1}));
  EXPECT_EQ(outcome.verdict.accepted, 2U);
  EXPECT_TRUE(outcome.verdict.finished);
  EXPECT_EQ(outcome.verdict.reason, FinishReason::kEnd);
  outcome = Of({1, 2}, {kEnd, 2, 3});
  EXPECT_TRUE(outcome.tokens.empty());
  EXPECT_EQ(outcome.verdict.accepted, 0U);
  EXPECT_TRUE(outcome.verdict.finished);
}

TEST(VerifierTest, KeepsTheLimitExactly) {
  for (std::size_t room = 0; room <= 5; ++room) {
    const Outcome outcome = Of({1, 2, 3}, {1, 2, 3, 4}, room);
    EXPECT_EQ(outcome.tokens.size(), std::min<std::size_t>(room, 4));
    EXPECT_EQ(outcome.verdict.committed, outcome.tokens.size());
    EXPECT_LE(outcome.verdict.accepted, outcome.tokens.size());
    EXPECT_EQ(outcome.verdict.finished, room <= 4) << room;
    if (room <= 4) {
      EXPECT_EQ(outcome.verdict.reason, FinishReason::kLimit);
    }
  }
}

}  // namespace
}  // namespace as2d
