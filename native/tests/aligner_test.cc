#include "as2d/decode/aligner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <vector>

namespace as2d {
namespace {

using Tokens = std::vector<TokenId>;

const TokenKeys kNoKeys;

Tokens Candidates(const Aligner& aligner, std::size_t count) {
  const std::optional<std::size_t> position = aligner.Position();
  if (!position) return {};
  const auto candidates = aligner.Candidates(*position, count);
  return {candidates.begin(), candidates.end()};
}

Aligner Aligned(const Tokens& committed, const Tokens& draft, int band = 64) {
  Aligner aligner(kNoKeys, band);
  for (const TokenId token : draft) aligner.PushDraft(token);
  for (const TokenId token : committed) aligner.PushCommitted(token);
  return aligner;
}

TEST(AlignerTest, FollowsADraftThatIsRight) {
  const Aligner aligner = Aligned({1, 2, 3}, {1, 2, 3, 4, 5});
  EXPECT_EQ(aligner.Position(), 3U);
  EXPECT_EQ(Candidates(aligner, 8), (Tokens{4, 5}));
  EXPECT_EQ(Candidates(aligner, 1), (Tokens{4}));
}

TEST(AlignerTest, HasNothingWithoutDraft) {
  EXPECT_TRUE(Candidates(Aligned({1, 2}, {}), 8).empty());
  EXPECT_TRUE(Candidates(Aligned({}, {}), 8).empty());
}

TEST(AlignerTest, BeginsWithTheWholeDraft) {
  EXPECT_EQ(Candidates(Aligned({}, {1, 2}), 8), (Tokens{1, 2}));
}

TEST(AlignerTest, FindsThePlaceAgainAfterEachKindOfDifference) {
  EXPECT_EQ(Candidates(Aligned({1, 9, 3, 4}, {1, 2, 3, 4, 5}), 1), (Tokens{5})) << "another token";
  EXPECT_EQ(Candidates(Aligned({1, 3, 4}, {1, 2, 3, 4, 5}), 1), (Tokens{5})) << "one left out";
  EXPECT_EQ(Candidates(Aligned({1, 2, 9, 3, 4}, {1, 2, 3, 4, 5}), 1), (Tokens{5})) << "one more";
}

TEST(AlignerTest, PassesOverTheDraftsVersionOfAWrongToken) {
  // Right after the difference there is only the count to go by: the next candidate is what
  // follows.
  EXPECT_EQ(Candidates(Aligned({1, 2, 9}, {1, 2, 3, 4, 5}), 2), (Tokens{4, 5}));
}

TEST(AlignerTest, PrefersAPlaceWhoseLastTokenMatches) {
  // Both places after a 7 are at the same distance; the draft's second 7 is not the committed one.
  const Aligner aligner = Aligned({7}, {7, 5, 7});
  EXPECT_EQ(aligner.Position(), 1U);
}

TEST(AlignerTest, SkipsWhatALateDrafterMissed) {
  Aligner aligner(kNoKeys);
  const Tokens text = {1, 2, 3, 4, 5, 6, 7, 8};
  for (int i = 0; i < 5; ++i) aligner.PushCommitted(text[static_cast<std::size_t>(i)]);
  EXPECT_TRUE(Candidates(aligner, 8).empty());
  for (const TokenId token : text) {
    aligner.PushDraft(token);
    if (token <= 5) {
      EXPECT_TRUE(Candidates(aligner, 8).empty()) << "token " << token << " is late";
    }
  }
  EXPECT_EQ(Candidates(aligner, 8), (Tokens{6, 7, 8}));
}

TEST(AlignerTest, MatchesFormsOfAWordBetterThanOtherWords) {
  const Vocabulary vocabulary({"", " the", "The", " cat", " dog", " sat", ",", " on"}, false);
  const TokenKeys keys(vocabulary);
  Aligner aligner(keys);
  for (const TokenId token : {1, 3, 5, 7}) aligner.PushDraft(token);  // " the cat sat on"
  for (const TokenId token : {2, 6}) aligner.PushCommitted(token);    // "The,"
  const std::optional<std::size_t> position = aligner.Position();
  EXPECT_EQ(position, 1U) << "the comma stands for no word of the draft";
}

TEST(AlignerTest, ForgetsTheLastWindow) {
  Aligner aligner = Aligned({1, 2, 3}, {1, 2, 3, 4});
  aligner.Reset();
  EXPECT_EQ(aligner.committed(), 0U);
  EXPECT_EQ(aligner.drafted(), 0U);
  aligner.PushDraft(8);
  aligner.PushDraft(9);
  aligner.PushCommitted(8);
  EXPECT_EQ(Candidates(aligner, 8), (Tokens{9}));
}

TEST(AlignerTest, AnotherPlaceIsTheLeastDistantWithAnotherToken) {
  // After 1, 2: 9 costs a draft token passed over, and the place before 2 a committed one.
  const Aligner aligner = Aligned({1, 2}, {1, 2, 9, 3, 4});
  EXPECT_EQ(aligner.Position(), 2U);
  const auto other = [&](const Tokens& taken) { return aligner.OtherPosition(taken); };
  EXPECT_EQ(other({9}), 3U) << "9 is one token more in the draft";
  EXPECT_EQ(other({9, 3}), 1U) << "or 2 is to come yet: a committed token that the draft lacks";
  EXPECT_EQ(other({9, 3, 2}), 4U) << "or 3 is one token more, too: eighteen tenths";
  EXPECT_EQ(other({9, 3, 2, 4}), 0U) << "two committed tokens that the draft lacks are the most";
  EXPECT_EQ(other({9, 3, 2, 4, 1}), std::nullopt);
  EXPECT_EQ(other({}), 2U) << "the best is as good as any";
}

TEST(AlignerTest, AnotherPlaceIsTheFurthestOfEquals) {
  // Two committed tokens of which the draft has none: 0, 1 and 2 cost the same.
  const Aligner aligner = Aligned({8, 9}, {1, 2, 3, 4});
  EXPECT_EQ(aligner.Position(), 2U);
  EXPECT_EQ(aligner.OtherPosition(Tokens{3}), 1U);
}

TEST(AlignerTest, ThereIsNoOtherPlaceFarAwayOrWithoutDraft) {
  EXPECT_EQ(Aligned({1}, {1, 2}).OtherPosition(Tokens{2, 1}), std::nullopt);
  EXPECT_EQ(Aligned({}, {}).OtherPosition({}), std::nullopt);
  EXPECT_EQ(Aligned({1, 2}, {}).OtherPosition({}), std::nullopt);
  EXPECT_EQ(Aligned({1}, {1, 2, 2, 2, 3}).OtherPosition(Tokens{2, 1}), std::nullopt)
      << "3 comes after three tokens too many";
}

/// The whole table, as the textbook has it, with the aligner's costs for tokens without keys.
std::vector<int> LastColumn(const Tokens& committed, const Tokens& draft) {
  std::vector<int> column(draft.size() + 1);
  for (std::size_t j = 0; j <= draft.size(); ++j) column[j] = static_cast<int>(j) * 9;
  for (const TokenId token : committed) {
    std::vector<int> next(column.size());
    next[0] = column[0] + 10;
    for (std::size_t j = 1; j < column.size(); ++j) {
      next[j] = std::min(
          {column[j - 1] + (draft[j - 1] == token ? 0 : 10), column[j] + 10, next[j - 1] + 9});
    }
    column = std::move(next);
  }
  return column;
}

class AlignerPropertyTest : public testing::TestWithParam<unsigned> {};

TEST_P(AlignerPropertyTest, FindsTheLeastDistanceInAnyOrderOfAppends) {
  std::mt19937 random(GetParam());
  for (int round = 0; round < 200; ++round) {
    // Two versions of one text, with differences, appended in turns of random lengths.
    Tokens committed;
    Tokens draft;
    for (auto n = 5 + random() % 30; n > 0; --n) {
      const auto token = static_cast<TokenId>(random() % 6);
      if (random() % 8 != 0) committed.push_back(token);
      if (random() % 8 != 0) draft.push_back(random() % 8 == 0 ? token + 1 : token);
    }
    Aligner aligner(kNoKeys, 1000);
    std::size_t i = 0;
    std::size_t j = 0;
    while (i < committed.size() || j < draft.size()) {
      if (j == draft.size() || (i < committed.size() && random() % 2 == 0)) {
        aligner.PushCommitted(committed[i++]);
      } else {
        aligner.PushDraft(draft[j++]);
      }
    }
    const std::vector<int> column = LastColumn(committed, draft);
    const int least = *std::min_element(column.begin(), column.end());
    const std::optional<std::size_t> position = aligner.Position();
    ASSERT_TRUE(position);
    ASSERT_EQ(column[*position], least);
    // The rule for ties.
    std::optional<std::size_t> expected;
    for (std::size_t k = 0; k < column.size(); ++k) {
      if (column[k] == least && k > 0 && draft[k - 1] == committed.back()) expected = k;
    }
    for (std::size_t k = 0; !expected && k < column.size(); ++k) {
      if (std::all_of(column.begin() + static_cast<std::ptrdiff_t>(k) + 1, column.end(),
                      [&](int value) { return value > least; })) {
        expected = k;
      }
    }
    EXPECT_EQ(position, expected);
  }
}

TEST_P(AlignerPropertyTest, KeepsItsPlaceWithinANarrowBand) {
  // One side far ahead of the other, by turns: the band moves along, and the place is found again
  // whenever the other side catches up.
  std::mt19937 random(GetParam());
  Aligner aligner(kNoKeys, 8);
  Tokens text;
  for (int i = 0; i < 600; ++i) text.push_back(static_cast<TokenId>(random() % 500));
  std::size_t committed = 0;
  std::size_t drafted = 0;
  for (const auto& [to_committed, to_drafted] : std::vector<std::pair<std::size_t, std::size_t>>{
           {0, 100}, {90, 100}, {150, 100}, {150, 300}, {290, 600}, {599, 600}}) {
    while (drafted < to_drafted) aligner.PushDraft(text[drafted++]);
    while (committed < to_committed) aligner.PushCommitted(text[committed++]);
    if (committed < drafted) {
      ASSERT_FALSE(Candidates(aligner, 1).empty()) << committed << " of " << drafted;
      EXPECT_EQ(Candidates(aligner, 1).front(), text[committed]);
    } else {
      EXPECT_TRUE(Candidates(aligner, 1).empty()) << "the drafter is late";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, AlignerPropertyTest, testing::Range(1U, 6U));

}  // namespace
}  // namespace as2d
