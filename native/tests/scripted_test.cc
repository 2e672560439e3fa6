// Every other test of the lanes trusts that a scripted target notices what a caller does wrong.
#include "as2d/decode/scripted.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "as2d/error.h"

namespace as2d {
namespace {

using Tokens = std::vector<TokenId>;

const Tokens kPrompt = {900, 901};
const Tokens kText = {1, 2, 3, 4, 5, 6};

class ScriptedTargetTest : public testing::Test {
 protected:
  void Begin(int window, int slot) {
    const std::vector<float> samples = {static_cast<float>(window)};
    target_.Encode(samples, slot);
    EXPECT_EQ(target_.Prompt(kPrompt, Choice(), slot).token, window == 0 ? kText[0] : 11);
  }

  Tokens Forward(const std::vector<Row>& rows) {
    Tokens next(rows.size());
    std::vector<float> sure(rows.size());
    target_.Forward(rows, next, sure);
    return next;
  }

  static Row At(TokenId token, int at, int slot = 0) {
    return {.token = token, .position = at, .slot = slot, .at = at};
  }

  /// The step of a committed token at 2, a run of two at 3 and another of two at 5.
  Tokens TwoRuns(const Tokens& one, const Tokens& other) {
    return Forward({At(kText[0], 2),
                    At(one[0], 3),
                    At(one[1], 4),
                    {.token = other[0], .position = 3, .at = 5, .shared = 3, .begin = 5},
                    {.token = other[1], .position = 4, .at = 6, .shared = 3, .begin = 5}});
  }

  ScriptedTarget target_{{{0, kText}, {1, {11, 12}}},
                         {.vocabulary_size = 1000,
                          .context = 20,
                          .end_token = 999,
                          .even_rows_only = false,
                          .slots = 2}};
};

TEST_F(ScriptedTargetTest, SaysItsScript) {
  Begin(0, 0);
  EXPECT_EQ(Forward({At(1, 2)}), (Tokens{2}));
  EXPECT_EQ(Forward({At(2, 3), At(3, 4), At(4, 5), At(5, 6), At(6, 7)}), (Tokens{3, 4, 5, 6, 999}));
  EXPECT_EQ(target_.steps(), (std::vector<std::size_t>{1, 5}));
}

TEST_F(ScriptedTargetTest, NoticesAWrongCandidateThatWasKept) {
  Begin(0, 0);
  EXPECT_EQ(Forward({At(1, 2), At(77, 3)}).front(), 2);
  EXPECT_NE(Forward({At(3, 4)}).front(), 4) << "77 is still at 3";
  EXPECT_EQ(Forward({At(2, 3), At(3, 4)}), (Tokens{3, 4})) << "a rewind is a smaller place";
}

TEST_F(ScriptedTargetTest, ARunSeesThePrefixAndItself) {
  Begin(0, 0);
  const Tokens next = TwoRuns({77, 78}, {2, 3});
  EXPECT_EQ(next[0], 2);
  EXPECT_NE(next[1], 3);
  EXPECT_EQ(next[3], 3);
  EXPECT_EQ(next[4], 4);
}

TEST_F(ScriptedTargetTest, NoticesARunThatSeesTheOther) {
  Begin(0, 0);
  const Tokens next = Forward({At(1, 2), At(77, 3), At(2, 4)});
  EXPECT_NE(next[2], 3);
}

TEST_F(ScriptedTargetTest, AMovedRunTakesThePlaceOfTheOther) {
  Begin(0, 0);
  TwoRuns({77, 78}, {2, 3});
  target_.Move(0, 5, 3, 2);
  EXPECT_EQ(Forward({At(4, 5)}), (Tokens{5}));
}

TEST_F(ScriptedTargetTest, NoticesARunThatWasNotMovedOrMovedWrongly) {
  for (const auto& wrong : std::vector<std::function<void()>>{
           [] {},
           [this] { target_.Move(0, 5, 4, 2); },
           [this] { target_.Move(0, 4, 3, 2); },
           [this] { target_.Move(0, 6, 3, 1); },
       }) {
    Begin(0, 0);
    TwoRuns({77, 78}, {2, 3});
    wrong();
    try {
      EXPECT_NE(Forward({At(4, 5)}), (Tokens{5}));
    } catch (const Error&) {  // a hole is as good as a wrong word
    }
  }
  Begin(0, 0);
  TwoRuns({77, 78}, {2, 3});
  target_.Move(0, 5, 3, 1);
  EXPECT_THROW(Forward({At(4, 5)}), Error) << "too few moved leave a hole";
}

TEST_F(ScriptedTargetTest, RefusesMovesThatAreNone) {
  Begin(0, 0);
  TwoRuns({77, 78}, {2, 3});
  EXPECT_THROW(target_.Move(0, 5, 5, 2), Error);
  EXPECT_THROW(target_.Move(0, 3, 5, 2), Error);
  EXPECT_THROW(target_.Move(0, 5, -1, 2), Error);
  EXPECT_THROW(target_.Move(0, 5, 3, 3), Error) << "there are two";
  EXPECT_THROW(target_.Move(0, 5, 3, -1), Error);
  EXPECT_THROW(target_.Move(1, 5, 3, 2), Error) << "not in this slot";
  EXPECT_THROW(target_.Move(2, 5, 3, 2), Error);
}

TEST_F(ScriptedTargetTest, RefusesRowsThatCannotBe) {
  for (const Row& row : std::vector<Row>{
           At(1000, 2),
           At(-1, 2),
           At(1, -1),
           At(1, 3),   // a hole
           At(1, 20),  // beyond the context
           {.token = 1, .position = 3, .at = 2},
           {.token = 1, .position = 1, .at = 2},
           {.token = 1, .position = 2, .slot = 1, .at = 2},  // the slot has no window
           {.token = 1, .position = 2, .slot = 2, .at = 2},
           {.token = 1, .position = 2, .slot = -1, .at = 2},
           {.token = 1, .position = 2, .at = 2, .shared = -1, .begin = 0},
           {.token = 1, .position = 2, .at = 2, .shared = 2, .begin = 1},
           {.token = 1, .position = 1, .at = 2, .shared = 2, .begin = 3},
       }) {
    Begin(0, 0);
    EXPECT_THROW(Forward({row}), Error) << row.token << " " << row.position << " " << row.slot
                                        << " " << row.at << " " << row.shared << " " << row.begin;
  }
  Begin(0, 0);
  EXPECT_THROW(Forward({At(1, 2), At(2, 4)}), Error) << "they do not follow one another";
  EXPECT_THROW(Forward({At(1, 2), At(2, 2)}), Error);
}

TEST_F(ScriptedTargetTest, NoticesARewindIntoThePrompt) {
  Begin(0, 0);
  EXPECT_NE(Forward({At(1, 0)}).front(), 2);
  EXPECT_NE(Forward({At(1, 1)}).front(), 2);
}

TEST_F(ScriptedTargetTest, RefusesAnOddNumberOfRowsWhereItIsToBeEven) {
  ScriptedTarget even({{0, kText}}, {});
  even.Encode(std::vector<float>{0}, 0);
  even.Prompt(kPrompt, Choice(), 0);
  Tokens next(2);
  std::vector<float> sure(2);
  EXPECT_THROW(even.Forward(std::vector<Row>{At(1, 2)}, next, sure), Error);
  even.Forward(std::vector<Row>{At(1, 2), At(1, 3)}, next, sure);
  EXPECT_EQ(next.front(), 2);
}

TEST_F(ScriptedTargetTest, SlotsAreApart) {
  Begin(0, 0);
  Begin(1, 1);
  EXPECT_EQ(Forward({At(1, 2, 0), At(11, 2, 1)}), (Tokens{2, 12}));
  EXPECT_NE(Forward({At(12, 3, 0), At(2, 3, 1)}), (Tokens{3, 999})) << "each the other's token";
  EXPECT_EQ(Forward({At(12, 3, 1), At(2, 3, 0)}), (Tokens{999, 3}));
}

TEST_F(ScriptedTargetTest, EncodeForgetsTheLastWindowOfItsSlotOnly) {
  Begin(0, 0);
  Begin(1, 1);
  target_.Encode(std::vector<float>{1}, 0);
  EXPECT_THROW(Forward({At(1, 2)}), Error) << "no prompt yet";
  EXPECT_EQ(Forward({At(11, 2, 1)}), (Tokens{12}));
  EXPECT_THROW(target_.Encode(std::vector<float>{1}, 2), Error);
  EXPECT_THROW(target_.Prompt(kPrompt, Choice(), -1), Error);
}

class ScriptedDrafterTest : public testing::Test {
 protected:
  Tokens Next(ScriptedDrafter& drafter) {
    Tokens tokens;
    more_ = drafter.Next(&tokens);
    return tokens;
  }

  bool more_ = true;
};

TEST_F(ScriptedDrafterTest, GoesOnAfterAHistory) {
  ScriptedDrafter drafter({{0, {1, 2, 3}}}, {.confidence = 0.8F});
  Window window;
  drafter.Begin(window, {});
  EXPECT_TRUE(drafter.encoding());
  EXPECT_EQ(Next(drafter), Tokens{});
  EXPECT_FALSE(drafter.encoding());
  EXPECT_EQ(Next(drafter), (Tokens{1}));
  EXPECT_FALSE(drafter.encoding());
  EXPECT_FLOAT_EQ(drafter.confidence(), 0.8F);

  drafter.Follow(Tokens{1, 2});
  EXPECT_EQ(Next(drafter), (Tokens{3}));
  EXPECT_EQ(Next(drafter), Tokens{});
  EXPECT_FALSE(more_);

  drafter.Follow(Tokens{1, 7});
  EXPECT_EQ(Next(drafter), (Tokens{8})) << "another history than its script's";
  EXPECT_EQ(Next(drafter), (Tokens{9}));
  EXPECT_FLOAT_EQ(drafter.confidence(), 0.4F);

  drafter.Follow({});
  EXPECT_EQ(Next(drafter), (Tokens{1})) << "also after its end";
  EXPECT_FLOAT_EQ(drafter.confidence(), 0.8F);
}

TEST_F(ScriptedDrafterTest, NoticesAnEncodingThatIsNotTheWindows) {
  ScriptedDrafter drafter({{0, {1}}}, {.needs_encoding = true});
  Window window;
  window.samples = {3, 4};
  std::vector<float> encoding = window.samples;
  for (const std::vector<float>& other : std::vector<std::vector<float>>{{}, {3}, {3, 5}}) {
    EXPECT_THROW(drafter.Begin(window, other), Error);
  }
  drafter.Begin(window, encoding);
  EXPECT_EQ(Next(drafter), Tokens{});
  EXPECT_EQ(Next(drafter), Tokens{1});
  encoding[0] = 5;
  EXPECT_THROW(Next(drafter), Error) << "it is valid no more";
  ScriptedDrafter other({{0, {1}}}, {});
  EXPECT_THROW(other.Begin(window, window.samples), Error) << "it did not ask for it";
}

}  // namespace
}  // namespace as2d
