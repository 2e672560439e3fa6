// The rules for timestamps, against those of openai/whisper as they are written there: masks over
// whole texts.
#include "as2d/decode/choice.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace as2d {
namespace {

constexpr TokenId kEndToken = 10;
constexpr TokenId kFirst = 13;  // 11 and 12 are neither text nor time
constexpr TokenId kSize = 30;
constexpr int kMostInitial = 5;

std::vector<bool> Allowed(const Choice& choice) {
  std::vector<bool> allowed(kSize);
  for (TokenId token = 0; token < kSize; ++token) {
    const bool text = token >= choice.first && token < choice.timestamps;
    const bool time = token >= choice.low && token < choice.high && token >= choice.timestamps;
    allowed[static_cast<std::size_t>(token)] = text || time;
  }
  return allowed;
}

/// ApplyTimestampRules, but for the rule that looks at probabilities.
std::vector<bool> Reference(const std::vector<TokenId>& text) {
  std::vector<bool> allowed(kSize, true);
  const auto forbid = [&](TokenId from, TokenId to) {
    for (TokenId token = from; token < to; ++token)
      allowed[static_cast<std::size_t>(token)] = false;
  };
  const bool last = !text.empty() && text.back() >= kFirst;
  const bool before = text.size() < 2 || text[text.size() - 2] >= kFirst;
  if (last && before) forbid(kFirst, kSize);
  if (last && !before) forbid(0, kEndToken);
  TokenId latest = -1;
  for (const TokenId token : text) {
    if (token >= kFirst) latest = token;
  }
  if (latest >= 0) forbid(kFirst, last && !before ? latest : latest + 1);
  if (text.empty()) {
    forbid(0, kFirst);
    forbid(kFirst + kMostInitial + 1, kSize);
  }
  return allowed;
}

TEST(ChoiceRulesTest, AreThoseOfWhisper) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    ChoiceRules rules(kEndToken, kFirst, kMostInitial);
    std::vector<TokenId> text;
    while (text.size() < 12) {
      const std::vector<bool> allowed = Allowed(rules.Next());
      ASSERT_EQ(allowed, Reference(text)) << testing::PrintToString(text);
      std::vector<TokenId> possible;
      for (TokenId token = 0; token < kSize; ++token) {
        // Half of the time a timestamp, where there can be one.
        if (!allowed[static_cast<std::size_t>(token)] || token == kEndToken) continue;
        possible.insert(possible.end(), token >= kFirst ? 3 : 1, token);
      }
      if (possible.empty()) break;
      text.push_back(possible[random() % possible.size()]);
      rules.Push(text.back());
    }
  }
}

TEST(ChoiceRulesTest, WithoutTimestampsAnythingGoes) {
  ChoiceRules rules;
  for (const TokenId token : {3, 20, 20, 4}) {
    EXPECT_EQ(rules.Next(), Choice());
    EXPECT_FALSE(rules.IsTimestamp(token));
    rules.Push(token);
  }
  EXPECT_EQ(rules.SegmentEnd(), Choice::kEnd);
}

TEST(ChoiceRulesTest, KnowWhereASegmentEnds) {
  ChoiceRules rules(kEndToken, kFirst, kMostInitial);
  std::vector<TokenId> ends;
  for (const TokenId token : {13, 1, 2, 15, 15, 3, 19}) {
    rules.Push(token);
    ends.push_back(rules.SegmentEnd());
  }
  const TokenId no = Choice::kEnd;
  EXPECT_EQ(ends, (std::vector<TokenId>{no, no, no, 15, no, no, 19}));
}

TEST(ChoiceRulesTest, CarryTheTemperature) {
  ChoiceRules rules(kEndToken, kFirst, kMostInitial);
  rules.Sample(0.4F, 7);
  rules.Push(13);
  EXPECT_EQ(rules.Next().temperature, 0.4F);
  EXPECT_EQ(rules.Next().seed, 7U);
}

}  // namespace
}  // namespace as2d
