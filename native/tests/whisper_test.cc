// Slots, candidate runs and histories on real graphs: what a row sees is what counts, not where in
// the caches it lies or what else is in the batch.
#include "as2d/models/whisper.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "as2d/error.h"
#include "as2d/models/quiet_cuts.h"
#include "bundles_for_test.h"

namespace as2d {
namespace {

using Tokens = std::vector<TokenId>;

std::shared_ptr<WhisperModel> LoadModel() {
  return std::make_shared<WhisperModel>(TestRuntime(), Bundle::Open(BundlePath("one")),
                                        WorkerPool::Unpinned("test", 1));
}

/// Tokens and how sure of each the model was.
struct Said {
  Tokens tokens;
  std::vector<float> log_probs;

  bool operator==(const Said&) const = default;
};

class WhisperTest : public testing::Test {
 protected:
  static Row At(TokenId token, int at, int slot = 0) {
    return {.token = token, .position = at, .slot = slot, .at = at};
  }

  std::vector<float> SoundOf(int window) const {
    return Sound(16000 * (static_cast<std::size_t>(window) + 1),
                 0.01F * static_cast<float>(window + 1));
  }

  /// Begins a window; returns its first token, whose place is prompt_.size().
  TokenId Begin(int window, int slot = 0) {
    target_.Encode(SoundOf(window), slot);
    return target_.Prompt(prompt_, Choice(), slot).token;
  }

  Tokens Forward(const std::vector<Row>& rows) {
    Tokens next(rows.size());
    model_->Forward(rows, false, next);
    return next;
  }

  /// Appends what follows `token`, whose place is `at`, a token at a time. In steps of two rows, as
  /// the target lane pads them.
  void GoOn(TokenId token, int at, std::size_t count, Said* said, int slot = 0) {
    for (; said->tokens.size() < count; ++at) {
      token = Forward({At(token, at, slot), At(token, at + 1, slot)}).front();
      said->tokens.push_back(token);
      said->log_probs.push_back(model_->log_probability(0));
    }
  }

  /// `first` and what follows it.
  Said Straight(int window, std::size_t count) {
    Said said;
    const TokenId first = Begin(window);
    GoOn(first, first_at_, count, &said);
    said.tokens.insert(said.tokens.begin(), first);
    return said;
  }

  const std::shared_ptr<WhisperModel> model_ = LoadModel();
  WhisperTarget target_{model_};
  const Tokens prompt_ = {model_->bundle().RequiredToken("start"),
                          model_->bundle().RequiredToken("no_timestamps")};
  const int first_at_ = static_cast<int>(prompt_.size());
};

class RunsTest : public WhisperTest {
 protected:
  /// Two runs of three after the first token, the second of which is right, and what the model says
  /// of the second: as the target lane would ask.
  Said TwoRuns(const Tokens& right, int slot) {
    std::vector<Row> rows = {At(right[0], first_at_, slot)};
    for (int i = 1; i <= 3; ++i) {
      rows.push_back(At((right[static_cast<std::size_t>(i)] + 7) % 200, first_at_ + i, slot));
    }
    for (int i = 1; i <= 4; ++i) {  // the last row is there to pad
      const std::size_t token = static_cast<std::size_t>(std::min(i, 3));
      rows.push_back({.token = right[token],
                      .position = first_at_ + i,
                      .slot = slot,
                      .at = first_at_ + 3 + i,
                      .shared = first_at_ + 1,
                      .begin = first_at_ + 4});
    }
    const Tokens next = Forward(rows);
    Said said;
    for (const std::size_t row : {0U, 4U, 5U, 6U}) {
      said.tokens.push_back(next[row]);
      said.log_probs.push_back(model_->log_probability(row));
    }
    return said;
  }
};

TEST_F(RunsTest, ASecondRunSaysWhatItWouldAloneAndTakesThePlaceOfTheFirst) {
  constexpr std::size_t kCount = 30;
  model_->ReserveSlots(3);
  const Said straight = Straight(0, kCount);
  for (const int slot : {0, 2}) {
    const TokenId first = Begin(0, slot);
    ASSERT_EQ(first, straight.tokens[0]);
    Said said = TwoRuns(straight.tokens, slot);
    target_.Move(slot, first_at_ + 4, first_at_ + 1, 3);
    GoOn(said.tokens.back(), first_at_ + 4, kCount, &said, slot);
    said.tokens.insert(said.tokens.begin(), first);
    EXPECT_EQ(said, straight) << "bit for bit, slot " << slot;
  }
}

TEST_F(RunsTest, WithoutTheMoveItWouldBeSeen) {
  constexpr std::size_t kCount = 30;
  const Said straight = Straight(0, kCount);
  Begin(0);
  Said said = TwoRuns(straight.tokens, 0);
  GoOn(said.tokens.back(), first_at_ + 4, kCount, &said);
  EXPECT_NE(said.log_probs, straight.log_probs);
}

TEST_F(RunsTest, AMoveLeavesTheOtherSlotsAlone) {
  constexpr std::size_t kCount = 12;
  model_->ReserveSlots(3);
  const Said straight = Straight(1, kCount);
  const Tokens other = Straight(0, 4).tokens;
  Said said;
  const TokenId first = Begin(1, 1);
  GoOn(first, first_at_, 6, &said, 1);
  for (const int slot : {0, 2}) {
    Begin(0, slot);
    TwoRuns(other, slot);
    target_.Move(slot, first_at_ + 4, first_at_ + 1, 3);
  }
  GoOn(said.tokens.back(), first_at_ + 6, kCount, &said, 1);
  said.tokens.insert(said.tokens.begin(), first);
  EXPECT_EQ(said, straight);
}

class SlotsTest : public WhisperTest {};

TEST_F(SlotsTest, WindowsOfABatchSayWhatTheyWouldAlone) {
  constexpr std::size_t kCount = 20;
  std::vector<Said> straight;
  for (int window = 0; window < 3; ++window) straight.push_back(Straight(window, kCount));
  EXPECT_NE(straight[0], straight[1]) << "or this says little";
  EXPECT_EQ(model_->slots(), 1);
  model_->ReserveSlots(4);
  EXPECT_EQ(model_->slots(), 4);
  std::vector<Said> said(3);
  const std::vector<int> slots = {3, 0, 2};
  for (std::size_t window = 0; window < 3; ++window) {
    said[window].tokens.push_back(Begin(static_cast<int>(window), slots[window]));
  }
  for (int at = first_at_; said[0].tokens.size() <= kCount; ++at) {
    std::vector<Row> rows;
    for (std::size_t window = 0; window < 3; ++window) {
      rows.push_back(At(said[window].tokens.back(), at, slots[window]));
    }
    rows.push_back(At(rows.back().token, at + 1, rows.back().slot));
    const Tokens next = Forward(rows);
    for (std::size_t window = 0; window < 3; ++window) {
      said[window].tokens.push_back(next[window]);
      said[window].log_probs.push_back(model_->log_probability(window));
    }
  }
  EXPECT_EQ(said, straight);
}

TEST_F(SlotsTest, MoreAreNotTakenBackAndOneWindowIsAsBefore) {
  const Said straight = Straight(0, 10);
  model_->ReserveSlots(16);
  EXPECT_EQ(Straight(0, 10), straight);
  model_->ReserveSlots(2);
  EXPECT_EQ(model_->slots(), 16);
  EXPECT_EQ(Straight(0, 10), straight);
}

TEST_F(SlotsTest, RefusesRowsThatDoNotFit) {
  Begin(0);
  EXPECT_THROW(Forward({}), Error);
  for (const Row& row : std::vector<Row>{
           At(1, -1),
           At(1, model_->context()),
           At(1, 2, 1),
           At(1, 2, -1),
           {.token = 1, .position = model_->context(), .at = 2},
           {.token = 1, .position = 2, .at = 2, .shared = -1},
           {.token = 1, .position = 2, .at = 2, .shared = 2, .begin = 1},
           {.token = 1, .position = 2, .at = 2, .shared = 2, .begin = 3},
       }) {
    EXPECT_THROW(Forward({row, row}), Error) << row.position << " " << row.slot << " " << row.at;
  }
  EXPECT_ANY_THROW(target_.Encode(SoundOf(0), 1));
}

TEST_F(WhisperTest, TheSameSamplesAreEncodedAnew) {
  // What is compared on the same window must do the same work. A call that works sees the cancel.
  target_.Encode(SoundOf(0), 0);
  target_.Cancel();
  EXPECT_THROW(target_.Encode(SoundOf(0), 0), Cancelled);
}

class FollowTest : public WhisperTest {
 protected:
  static Tokens Next(WhisperDrafter& drafter, std::size_t count) {
    Tokens tokens;
    while (tokens.size() < count && drafter.Next(&tokens)) {
    }
    return tokens;
  }

  Window window_ = [this] {
    Window window;
    window.samples = SoundOf(0);
    window.language = "en";
    return window;
  }();
};

TEST_F(FollowTest, SaysWhatADrafterWouldThatHasComputedNothingYet) {
  constexpr std::size_t kCount = 6;
  WhisperDrafter drafter(model_, false);
  const std::shared_ptr<WhisperModel> other = LoadModel();
  drafter.Begin(window_, {});
  const Tokens text = Next(drafter, 12);
  ASSERT_EQ(text.size(), 12U);
  Tokens changed = text;
  changed[5] = (changed[5] + 9) % 200;
  Tokens longer = text;
  longer.insert(longer.end(), {5, 6, 7, 8});
  const auto first = [](const Tokens& tokens, std::ptrdiff_t count) {
    return Tokens(tokens.begin(), tokens.begin() + count);
  };
  for (const Tokens& history :
       {text, first(text, 7), first(changed, 6), changed, longer, first(longer, 14), first(text, 1),
        Tokens{}, Tokens{9, 8, 7}, first(text, 11)}) {
    drafter.Follow(history);
    WhisperDrafter fresh(other, false);
    fresh.Begin(window_, {});
    fresh.Follow(history);
    EXPECT_EQ(Next(drafter, kCount), Next(fresh, kCount));
    EXPECT_EQ(drafter.confidence(), fresh.confidence());
  }
  drafter.Follow({});
  EXPECT_EQ(Next(drafter, 12), text) << "with the rules for a first token";
}

TEST_F(FollowTest, WorksBeforeTheEncoderAndAfterTheEnd) {
  WhisperDrafter drafter(model_, false);
  drafter.Begin(window_, {});
  const Tokens text = Next(drafter, 8);
  drafter.Begin(window_, {});
  drafter.Follow(Tokens(text.begin(), text.begin() + 4));
  Tokens none;
  EXPECT_TRUE(drafter.encoding());
  EXPECT_TRUE(drafter.Next(&none));
  EXPECT_EQ(Next(drafter, 4), Tokens(text.begin() + 4, text.end()));
  Next(drafter, 1000);  // to its end
  drafter.Follow(Tokens(text.begin(), text.begin() + 2));
  EXPECT_EQ(Next(drafter, 6), Tokens(text.begin() + 2, text.end()));
}

TEST_F(FollowTest, AHistoryThatFillsTheContextEndsTheDraft) {
  WhisperDrafter drafter(model_, false);
  drafter.Begin(window_, {});
  Next(drafter, 1);
  const auto room = static_cast<std::size_t>(model_->context() - 2);
  Tokens tokens;
  drafter.Follow(Tokens(room - 1, 5));
  EXPECT_FALSE(drafter.Next(&tokens));
  for (const std::size_t length : {room, room + 1, 2 * room}) {
    tokens.clear();
    drafter.Follow(Tokens(length, 5));
    EXPECT_FALSE(drafter.Next(&tokens));
    EXPECT_TRUE(tokens.empty());
  }
  drafter.Follow(Tokens(3, 5));
  EXPECT_EQ(Next(drafter, 2).size(), 2U);
}

TEST_F(FollowTest, LongerAudioIsDraftedPieceByPiece) {
  WhisperDrafter drafter(model_, true);
  const std::vector<float> samples = Sound(16000 * 33, 0.03F);
  std::vector<Tokens> said;
  auto begin = samples.begin();
  for (const std::size_t end : QuietCuts(samples, model_->window_samples())) {
    const auto next = samples.begin() + static_cast<std::ptrdiff_t>(end);
    window_.samples = {begin, next};
    drafter.Begin(window_, {});
    said.push_back(Next(drafter, 1000));
    begin = next;
  }
  ASSERT_EQ(said.size(), 2U);
  Tokens all = said[0];
  all.insert(all.end(), said[1].begin(), said[1].end());
  window_.samples = samples;
  drafter.Begin(window_, {});
  EXPECT_EQ(Next(drafter, all.size() + 1), all);
  ASSERT_GT(said[1].size(), 2U);
  for (const std::size_t known : {said[0].size() + 2, said[0].size() - 3}) {
    const auto from = all.begin() + static_cast<std::ptrdiff_t>(known);
    drafter.Follow(Tokens(all.begin(), from));
    EXPECT_EQ(drafter.encoding(), known < said[0].size()) << "back to the first piece";
    EXPECT_EQ(Next(drafter, all.size()), Tokens(from, all.end()));
  }
}

class ChoiceTest : public WhisperTest {
 protected:
  /// What follows `token`, whose place is `at`, with one choice throughout.
  Tokens Drawn(TokenId token, const Choice& choice, std::size_t count) {
    Tokens said;
    for (int at = first_at_; said.size() < count; ++at) {
      Row row = At(token, at);
      row.choice = choice;
      Row beside = At(3, at + 1);
      token = Forward({row, beside}).front();
      said.push_back(token);
    }
    return said;
  }
};

TEST_F(ChoiceTest, WhatIsDrawnHangsOnTheSeedAndThePlaceAlone) {
  Choice choice;
  choice.temperature = 1;
  choice.seed = 5;
  const TokenId first = Begin(0);
  const Tokens drawn = Drawn(first, choice, 12);
  Begin(0);
  EXPECT_EQ(Drawn(first, choice, 12), drawn);
  Begin(0);
  choice.seed = 6;
  EXPECT_NE(Drawn(first, choice, 12), drawn);

  // The same in one step: what a verify step does.
  choice.seed = 5;
  Begin(0);
  std::vector<Row> rows;
  for (int i = 0; i < 12; ++i) {
    rows.push_back(At(i == 0 ? first : drawn[static_cast<std::size_t>(i) - 1], first_at_ + i));
    rows.back().choice = choice;
  }
  EXPECT_EQ(Forward(rows), drawn);
}

TEST_F(ChoiceTest, ThatNobodySpeaksIsAskedOfTheBeginningOfTheText) {
  target_.Encode(SoundOf(0), 0);
  const FirstToken plain = target_.Prompt(prompt_, Choice(), 0);
  EXPECT_GT(plain.no_speech, 0.0F);
  EXPECT_LT(plain.no_speech, 1.0F);
  EXPECT_LT(plain.log_probability, 0.0F);
  const FirstToken alone = target_.Prompt(std::span(prompt_).first(1), Choice(), 0);
  EXPECT_EQ(alone.no_speech, plain.no_speech) << "whatever comes after the beginning";
  EXPECT_EQ(target_.Prompt(prompt_, Choice(), 0).token, plain.token) << "and it changes nothing";
  Tokens longer = {7, 8, 9};
  longer.insert(longer.end(), prompt_.begin(), prompt_.end());
  EXPECT_NE(target_.Prompt(longer, Choice(), 0).no_speech, plain.no_speech)
      << "what was said before is seen";
}

TEST_F(ChoiceTest, TimesOfTokensAscendWithinTheAudio) {
  ASSERT_GT(model_->alignment_heads(), 0U);
  Window window;
  window.samples = SoundOf(1);  // two seconds
  window.prompt = prompt_;
  target_.Encode(window.samples, 0);
  target_.Prompt(window.prompt, Choice(), 0);
  for (const std::size_t count : {1U, 2U, 9U}) {
    const std::vector<float> times = target_.TokenTimes(window, Tokens(count, 5), 0);
    ASSERT_EQ(times.size(), count + 1);
    EXPECT_TRUE(std::ranges::is_sorted(times));
    EXPECT_LE(times.back(), 2.0F);
  }
  const auto most = static_cast<std::size_t>(model_->context());
  EXPECT_EQ(target_.TokenTimes(window, Tokens(most, 5), 0).size(), most + 1)
      << "of more than the context holds, the last have the last one's time";
}

using BriefTest = FollowTest;

TEST_F(BriefTest, AWholeWindowIsEncodedAsEver) {
  const std::vector<float> sound = Sound(model_->window_samples(), 0.01F);
  Said whole;
  Said brief;
  target_.Encode(sound, 0);
  GoOn(target_.Prompt(prompt_, Choice(), 0).token, first_at_, 10, &whole);
  model_->EncodeBriefly(sound);
  GoOn(target_.Prompt(prompt_, Choice(), 0).token, first_at_, 10, &brief);
  EXPECT_EQ(whole, brief);
}

TEST_F(BriefTest, LeavesNothingBehind) {
  const Said before = Straight(0, 10);
  for (const std::size_t samples : {0U, 1U, 16000U, 100000U}) {
    model_->EncodeBriefly(Sound(samples, 0.02F));
    Said said;
    GoOn(target_.Prompt(prompt_, Choice(), 0).token, first_at_, 4, &said);
    EXPECT_EQ(Straight(0, 10), before) << samples;
  }
}

TEST_F(BriefTest, SaysNoMoreThanAnybodyCanAndEndsWhereItLoops) {
  for (const int pitch : {1, 2, 3, 4, 5, 6, 7, 8}) {
    window_.samples = Sound(32000, 0.01F * static_cast<float>(pitch));
    WhisperDrafter brief(model_, true);
    brief.Begin(window_, {});
    const Tokens text = Next(brief, 1000);
    EXPECT_LE(text.size(), 12U + 7 * 2);
    // Only the end may be said for the third time.
    for (std::size_t end = 3; end < text.size(); ++end) {
      EXPECT_FALSE(text[end - 1] == text[end - 2] && text[end - 2] == text[end - 3]);
    }
  }
}

}  // namespace
}  // namespace as2d
