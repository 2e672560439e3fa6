// Audio language models on graphs as others publish them: what they say depends on the audio and on
// the text before, and on nothing else; and as targets of the whole engine.
#include "as2d/models/audio_llm.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "as2d/engine.h"
#include "as2d/error.h"
#include "bundles_for_test.h"

namespace as2d {
namespace {

using namespace std::chrono_literals;
using Tokens = std::vector<TokenId>;

constexpr std::size_t kSecond = 16000;
constexpr std::size_t kSamplesPerPosition = 1600;

/// Some words, never the end nor a place for audio.
Tokens Words(std::size_t count, unsigned seed) {
  Tokens words;
  for (std::size_t i = 0; i < count; ++i) {
    seed = seed * 1664525U + 1013904223U;
    words.push_back(static_cast<TokenId>((seed >> 8) % 250));
  }
  return words;
}

/// Words, so many places for audio among them, and a question.
Tokens Asked(TokenId audio_token, std::size_t places, TokenId question, std::size_t words = 30) {
  Tokens prompt = Words(words, 20);
  prompt.insert(prompt.begin() + 5, places, audio_token);
  prompt.push_back(question);
  return prompt;
}

Row At(TokenId token, int at, int slot = 0) {
  return {.token = token, .position = at, .slot = slot, .at = at};
}

std::unique_ptr<AudioLlmTarget> Load(const std::filesystem::path& folder) {
  return std::make_unique<AudioLlmTarget>(TestRuntime(), Bundle::Open(folder),
                                          WorkerPool::Unpinned("test", 1));
}

TokenId AudioToken(const std::string& name) {
  return Bundle::Open(BundlePath(name)).RequiredToken("audio");
}

/// Tokens and how sure of each the model was.
struct Said {
  Tokens tokens;
  std::vector<float> log_probs;

  bool operator==(const Said&) const = default;
};

/// With "listener", whose decoder is of plain operators, takes positions and makes all logits, and
/// that hears one window of audio as it is; and "attender", whose decoder is of fused operators in
/// 4 bits that work on their caches in place, takes no positions and makes the logits that are
/// asked for, and that hears windows which are filled up.
class AudioLlmTest : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<AudioLlmTarget> Load() const { return as2d::Load(BundlePath(GetParam())); }

  /// What comes after each of `text` from `first` on, in steps of so many rows.
  static Said Follow(AudioLlmTarget& target, const Tokens& text, std::size_t rows,
                     std::size_t first = 0, int slot = 0) {
    Said said;
    for (; first < text.size(); first += rows) {
      std::vector<Row> step;
      for (std::size_t i = first; i < std::min(first + rows, text.size()); ++i) {
        step.push_back(At(text[i], static_cast<int>(i), slot));
      }
      Tokens next(step.size());
      std::vector<float> log_probs(step.size());
      target.Forward(step, next, log_probs);
      said.tokens.insert(said.tokens.end(), next.begin(), next.end());
      said.log_probs.insert(said.log_probs.end(), log_probs.begin(), log_probs.end());
    }
    return said;
  }

  /// The answer about `samples`, token by token.
  Said Answer(AudioLlmTarget& target, const std::vector<float>& samples, TokenId question,
              int slot = 0) const {
    target.Encode(samples, slot);
    Tokens text = Asked(AudioToken(GetParam()), target.encoding().size() / target.encoding_width(),
                        question, 100);
    FirstToken first = target.Prompt(text, {}, slot);
    Said said = {{first.token}, {first.log_probability}};
    for (int i = 0; i < 12; ++i) {
      text.push_back(said.tokens.back());
      const Said next = Follow(target, text, 1, text.size() - 1, slot);
      said.tokens.push_back(next.tokens.front());
      said.log_probs.push_back(next.log_probs.front());
    }
    return said;
  }

  const std::unique_ptr<AudioLlmTarget> target_ = Load();
};

INSTANTIATE_TEST_SUITE_P(Published, AudioLlmTest, testing::Values("listener", "attender"),
                         [](const auto& one) { return one.param; });

TEST_P(AudioLlmTest, StepsOfAnyNumberOfRowsSayTheSame) {
  const Tokens text = Words(64, 1);
  const Said pairs = Follow(*target_, text, 2);
  const Said alone = Follow(*target_, text, 1);
  EXPECT_EQ(alone.tokens, pairs.tokens);
  for (const std::size_t rows : {4U, 8U, 64U}) {
    const Said said = Follow(*target_, text, rows);
    EXPECT_EQ(said.tokens, pairs.tokens) << rows << " rows";
    for (std::size_t i = 0; i < text.size(); ++i) {
      EXPECT_NEAR(said.log_probs[i], pairs.log_probs[i], 1e-3) << rows << " rows";
    }
  }
  target_->ReserveSlots(3);
  for (const int slot : {2, 0}) EXPECT_EQ(Follow(*target_, text, 2, 0, slot), pairs);
}

TEST_P(AudioLlmTest, APromptSaysWhatItsRowsDo) {
  const Tokens text = Words(AudioLlmTarget::kBlockRows * 2 + 7, 2);
  const Said rows = Follow(*target_, text, 1);
  const FirstToken first = Load()->Prompt(text, {}, 0);
  EXPECT_EQ(first.token, rows.tokens.back());
  EXPECT_NEAR(first.log_probability, rows.log_probs.back(), 1e-3);
}

TEST_P(AudioLlmTest, ARewindLeavesNothingOfWhatWasRejected) {
  const Tokens text = Words(40, 3);
  const Said right = Follow(*target_, text, 2);
  Tokens next(7);
  std::vector<float> log_probs(7);
  std::vector<Row> wrong;
  for (int i = 0; i < 7; ++i) wrong.push_back(At(7 + i, 20 + i));
  target_->Forward(wrong, next, log_probs);
  EXPECT_NE(next.front(), right.tokens[20]);
  const Said again = Follow(*target_, text, 2, 20);
  EXPECT_EQ(again.tokens, Tokens(right.tokens.begin() + 20, right.tokens.end()));
  EXPECT_EQ(again.log_probs,
            std::vector<float>(right.log_probs.begin() + 20, right.log_probs.end()));
}

TEST_P(AudioLlmTest, WhatIsSaidDependsOnTheAudioAndTheQuestion) {
  const std::vector<float> one = Sound(2 * kSecond, 0.05F);
  const std::vector<float> other = Sound(2 * kSecond, 0.2F);
  const Said said = Answer(*target_, one, 1);
  EXPECT_EQ(target_->encoding().size() / target_->encoding_width(),
            2 * kSecond / kSamplesPerPosition);
  EXPECT_NE(Answer(*target_, other, 1).tokens, said.tokens);
  EXPECT_NE(Answer(*target_, one, 2).tokens, said.tokens);
}

TEST_P(AudioLlmTest, WhatWasAskedBeforeChangesNothing) {
  const std::vector<float> one = Sound(2 * kSecond, 0.05F);
  const std::vector<float> other = Sound(2 * kSecond, 0.2F);
  const Said said = Answer(*target_, one, 1);
  const Said second = Answer(*Load(), one, 2);
  EXPECT_EQ(Answer(*target_, one, 2), second) << "a question after another, bit for bit";
  const Said of_other = Answer(*Load(), other, 2);
  EXPECT_EQ(Answer(*target_, other, 2), of_other) << "the same text about other audio";
  EXPECT_EQ(Answer(*target_, one, 1), said) << "the first one again";
  target_->ReserveSlots(2);
  EXPECT_EQ(Answer(*target_, other, 2, 1), of_other) << "in another slot";
  EXPECT_EQ(Answer(*target_, one, 1, 0), said) << "beside it";
}

TEST_P(AudioLlmTest, NoSamplesAreEncodedTwiceThatASlotHolds) {
  target_->ReserveSlots(2);
  const std::vector<float> samples = Sound(kSecond, 0.05F);
  target_->Encode(samples, 0);
  const float* const lines = target_->encoding().data();
  target_->Encode(Sound(kSecond, 0.2F), 1);
  EXPECT_NE(target_->encoding().data(), lines);
  target_->Encode(samples, 1);
  EXPECT_EQ(target_->encoding().data(), lines);
}

TEST_P(AudioLlmTest, APromptMustKeepAPlaceForEachLine) {
  target_->Encode(Sound(kSecond, 0.05F), 0);
  const TokenId token = AudioToken(GetParam());
  for (const std::size_t places : {0U, 9U, 11U}) {
    try {
      target_->Prompt(Asked(token, places, 1), {}, 0);
      ADD_FAILURE() << places << " places";
    } catch (const Error& error) {
      const std::string what = error.what();
      EXPECT_NE(what.find(std::to_string(places) + " places"), std::string::npos) << what;
      EXPECT_NE(what.find("10 lines"), std::string::npos) << what;
    }
  }
  target_->Prompt(Asked(token, 10, 1), {}, 0);
  target_->Encode({}, 0);
  target_->Prompt(Asked(token, 0, 1), {}, 0);  // of text alone
}

TEST_P(AudioLlmTest, RefusesAudioThatIsTooLong) {
  EXPECT_THROW(target_->Encode(std::vector<float>(3 * kSecond + 1), 0), Error);
}

TEST_P(AudioLlmTest, RefusesRowsThatTheseCachesCannotHold) {
  Tokens next(2);
  std::vector<float> log_probs(2);
  const auto forward = [&](const std::vector<Row>& rows) {
    target_->Forward(rows, next, log_probs);
  };
  forward({At(1, 0), At(2, 1)});
  EXPECT_THROW(forward({At(1, 3), At(2, 4)}), Error) << "nothing at 2";
  EXPECT_THROW(forward({At(1, 2), At(2, 4)}), Error) << "nothing at 3";
  EXPECT_THROW(forward({At(1, 0, 1)}), Error) << "no such slot";
  EXPECT_THROW(forward({At(1, target_->context())}), Error);
  Row beside = At(1, 3);
  beside.shared = beside.begin = 2;
  EXPECT_THROW(forward({At(1, 2), beside}), Error) << "a run beside another";
  EXPECT_THROW(target_->Move(0, 1, 0, 1), Error) << "nothing lies beside anything";
  forward({At(1, 2), At(2, 3)});
}

TEST_P(AudioLlmTest, SlotsInOneStepSayWhatTheyWouldAlone) {
  const Tokens text = Words(21, 4);
  const Said pairs = Follow(*target_, text, 2);
  target_->ReserveSlots(2);
  Follow(*target_, Tokens(text.begin(), text.begin() + 18), 2, 0, 0);
  Follow(*target_, Tokens(text.begin(), text.begin() + 18), 2, 0, 1);
  Tokens next(4);
  std::vector<float> log_probs(4);
  target_->Forward(
      std::vector{At(text[18], 18), At(text[18], 18, 1), At(text[19], 19, 1), At(text[20], 20, 1)},
      next, log_probs);
  EXPECT_EQ(next, (Tokens{pairs.tokens[18], pairs.tokens[18], pairs.tokens[19], pairs.tokens[20]}));
  EXPECT_EQ(log_probs[0], pairs.log_probs[18]) << "an even number of rows each, bit for bit";
  EXPECT_EQ(log_probs[2], pairs.log_probs[19]);
}

TEST_P(AudioLlmTest, ACancelledTargetStopsAndGoesOnWhenThatIsTakenBack) {
  const Said said = Answer(*target_, Sound(kSecond, 0.05F), 1);
  target_->Cancel();
  EXPECT_THROW(Answer(*target_, Sound(kSecond, 0.2F), 1), Cancelled);
  EXPECT_THROW(Follow(*target_, Words(20, 1), 2), Cancelled);
  target_->ClearCancel();
  EXPECT_EQ(Answer(*target_, Sound(kSecond, 0.05F), 1), said);
}

TEST_P(AudioLlmTest, AFirstTokenIsDrawnAsARowsIs) {
  const Tokens text = Words(12, 13);
  const Choice choice = {.temperature = 30, .seed = 5};
  const FirstToken first = target_->Prompt(text, choice, 0);
  EXPECT_NE(first.token, target_->Prompt(text, {}, 0).token);
  Row row = At(text.back(), 11);
  row.choice = choice;
  Tokens next(1);
  std::vector<float> log_probs(1);
  target_->Forward(std::vector{row}, next, log_probs);
  EXPECT_EQ(next.front(), first.token);
}

TEST(AudioLlmCachesTest, CachesInPlaceAndGrownOnesSayTheSame) {
  const ChangedBundle changed("attender", "caches: ", "caches: grown");
  const auto grown = Load(changed.folder());
  const auto in_place = Load(BundlePath("attender"));
  const Tokens text = Words(100, 6);
  for (const int at : {99, 70, 99, 20}) {  // back and forth
    Tokens next[2] = {Tokens(2), Tokens(2)};
    std::vector<float> log_probs[2] = {std::vector<float>(2), std::vector<float>(2)};
    AudioLlmTarget* const targets[] = {grown.get(), in_place.get()};
    for (int i = 0; i < 2; ++i) {
      targets[i]->Prompt(text, {}, 0);
      targets[i]->Forward(std::vector{At(text[5], at), At(text[6], at + 1)}, next[i], log_probs[i]);
    }
    EXPECT_EQ(next[0], next[1]) << "at " << at;
    EXPECT_EQ(log_probs[0], log_probs[1]) << "bit for bit";
  }
}

TEST(AudioLlmWindowsTest, AudioIsHeardWindowByWindow) {
  const auto target = Load(BundlePath("attender"));
  std::vector<float> samples = Sound(kSecond, 0.05F);
  target->Encode(samples, 0);
  const std::vector<float> first(target->encoding().begin(), target->encoding().end());
  const std::vector<float> more = Sound(kSecond / 2, 0.2F);
  samples.insert(samples.end(), more.begin(), more.end());
  target->Encode(samples, 0);
  const std::span<const float> both = target->encoding();
  ASSERT_EQ(both.size(), 2 * first.size()) << "the second one is filled up";
  EXPECT_TRUE(std::ranges::equal(both.first(first.size()), first));
  samples.resize(2 * kSecond);
  const std::vector<float> filled(both.begin(), both.end());
  target->Encode(samples, 0);
  EXPECT_TRUE(std::ranges::equal(target->encoding(), filled)) << "with silence";
}

TEST(AudioLlmWindowsTest, AudioOfAWindowIsNotFilledUp) {
  const auto target = Load(BundlePath("listener"));
  target->Encode(Sound(kSecond / 2, 0.05F), 0);
  EXPECT_EQ(target->encoding().size() / target->encoding_width(), 5U);
}

/// What a bundle with another line is refused for.
std::string RefusalOf(const std::string& line, const std::string& replacement,
                      const std::filesystem::path& extra = {}) {
  const ChangedBundle changed("listener", line, replacement);
  if (!extra.empty()) std::filesystem::copy(extra, changed.folder());
  try {
    const auto target = Load(changed.folder());
    target->Encode(Sound(kSecond, 0.05F), 0);
    target->Prompt(Asked(AudioToken("listener"), 10, 1), {}, 0);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(AudioLlmBundleTest, GraphsThatDoNotFitAreRefused) {
  EXPECT_EQ(RefusalOf("kind: ", "kind: ultravox"), "");
  const auto expect = [](const std::string& said, const std::string& file, const std::string& why) {
    EXPECT_NE(said.find(file), std::string::npos) << said;
    EXPECT_NE(said.find(why), std::string::npos) << said;
  };
  expect(RefusalOf("pad_to_window: ", "pad_to_window: maybe"), "bundle.txt", "yes nor no");
  expect(RefusalOf("decoder: ", "decoder: embed_tokens.onnx"), "embed_tokens.onnx",
         "no input that takes it back");
  expect(RefusalOf("encoder: ", "encoder: decoder_model_merged.onnx"), "decoder_model_merged.onnx",
         "inputs, where one");
  expect(RefusalOf("encoder: ", "encoder: half.onnx", TestData("half.onnx")), "half.onnx",
         "not float32");
  expect(RefusalOf("embedding: ", "embedding: decoder_model_merged.onnx"),
         "decoder_model_merged.onnx", "no tokens");
  expect(RefusalOf("vocabulary_size: ", "vocabulary_size: 260"), "decoder_model_merged.onnx",
         "260");
  expect(RefusalOf("width: ", "width: 32"), "audio_encoder.onnx", "32");
}

// The whole engine.

using Texts = std::map<std::int64_t, Tokens>;

/// Starts a run over questions about two recordings.
std::unique_ptr<as2d::Run> Start(Engine& engine, const std::string& name, Method method,
                                 std::size_t windows_at_once, float temperature) {
  RunOptions options;
  options.adaptive = true;
  options.batch = windows_at_once;
  auto run = engine.Start(method, 4, std::move(options));
  for (int i = 0; i < 4; ++i) {
    Window window;
    window.index = i;
    window.samples = Sound(2 * kSecond, i < 2 ? 0.05F : 0.2F);
    window.prompt = Asked(AudioToken(name), 20, i, 60);
    window.max_tokens = 40;
    window.source = Words(30, 21);
    window.temperature = temperature;
    window.seed = 5;
    run->Submit(std::move(window));
  }
  run->Finish();
  return run;
}

Texts Collect(as2d::Run& run) {
  Texts texts;
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  while (std::chrono::steady_clock::now() < deadline) {
    for (const Event& event : run.Poll(0.1s)) {
      if (event.kind == Event::Kind::kWindowFinished) texts[event.window] = event.tokens;
      if (event.kind == Event::Kind::kDrafterLost) ADD_FAILURE() << event.message;
      if (event.kind != Event::Kind::kRunFinished) continue;
      EXPECT_EQ(event.message, "");
      return texts;
    }
  }
  ADD_FAILURE() << "the run did not end";
  return texts;
}

class AudioLlmEngineTest : public testing::TestWithParam<std::string> {
 protected:
  Texts Answer(Method method, std::size_t windows_at_once = 1, float temperature = 0) {
    return Collect(*Start(engine_, GetParam(), method, windows_at_once, temperature));
  }

  Engine engine_{TestLibrary(), BundlePath(GetParam()), {}};
};

INSTANTIATE_TEST_SUITE_P(Published, AudioLlmEngineTest, testing::Values("listener", "attender"),
                         [](const auto& one) { return one.param; });

TEST_P(AudioLlmEngineTest, EveryMethodWithEveryDrafterSaysTheSame) {
  const Texts alone = Answer(Method::kTarget);
  ASSERT_EQ(alone.size(), 4U);
  EXPECT_NE(alone.at(0), alone.at(1)) << "another question, another answer";
  EXPECT_EQ(Answer(Method::kLookup), alone);
  EXPECT_EQ(Answer(Method::kBatched, 3), alone);
  for (const std::string drafter : {"one", "two"}) {
    engine_.LoadDrafter(BundlePath(drafter), {});
    for (const Method method :
         {Method::kAs2d, Method::kCoupled, Method::kAdaptive, Method::kPearl, Method::kAnchored}) {
      EXPECT_EQ(Answer(method), alone) << drafter << ", method " << int(method);
    }
    EXPECT_EQ(Answer(Method::kAs2d, 2), alone) << drafter << ", two at once";
  }
}

TEST_P(AudioLlmEngineTest, WhatIsDrawnIsTheSameWhateverIsDrafted) {
  const Texts alone = Answer(Method::kTarget, 1, 30);
  EXPECT_NE(alone, Answer(Method::kTarget)) << "the likeliest tokens";
  EXPECT_EQ(Answer(Method::kLookup, 1, 30), alone);
  engine_.LoadDrafter(BundlePath("two"), {});
  for (const Method method : {Method::kAs2d, Method::kCoupled}) {
    EXPECT_EQ(Answer(method, 1, 30), alone) << "method " << int(method);
  }
}

TEST_P(AudioLlmEngineTest, ACancelledRunEndsAndTheNextOneIsWhole) {
  const Texts alone = Answer(Method::kTarget);
  engine_.LoadDrafter(BundlePath("two"), {});
  const auto run = Start(engine_, GetParam(), Method::kAs2d, 1, 0);
  run->Poll(1s);
  run->Cancel();
  Collect(*run);
  EXPECT_EQ(Answer(Method::kAs2d), alone);
}

TEST_P(AudioLlmEngineTest, OnlyModelsOfSpeechDraftForIt) {
  for (const std::string drafter : {"speaker", "adapter", "ctc", "attender"}) {
    EXPECT_THROW(engine_.LoadDrafter(BundlePath(drafter), {}), Error) << drafter;
  }
  EXPECT_FALSE(engine_.has_drafter());
  Engine speech(TestLibrary(), BundlePath("one"), {});
  EXPECT_THROW(speech.LoadDrafter(BundlePath(GetParam()), {}), Error);
  EXPECT_THROW(engine_.LanguageProbabilities({}), Error);
}

TEST_P(AudioLlmEngineTest, RunsBesideEachOtherAreRefusedBeforeTheRun) {
  engine_.LoadDrafter(BundlePath("one"), {});
  EXPECT_THROW(engine_.Start(Method::kMulti, 4, {}), Error);
  EXPECT_EQ(Answer(Method::kTarget).size(), 4U);
}

TEST_P(AudioLlmEngineTest, ItsCostsAreMeasured) {
  EXPECT_EQ(engine_.TimeEncode(1, 2, {}).size(), 2U);
  const std::vector<int> rows = {1, 4};
  const auto times = engine_.TimeSteps(rows, 2, {});
  ASSERT_EQ(times.size(), 2U);
  for (const auto& samples : times) EXPECT_EQ(samples.size(), 2U);
  engine_.LoadDrafter(BundlePath("one"), {});
  Window window;
  window.samples = Sound(2 * kSecond, 0.05F);
  EXPECT_FALSE(engine_.TimeTogether(rows, 0.05, window, true).drafts.empty());
}

}  // namespace
}  // namespace as2d
