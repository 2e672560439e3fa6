// Language models on real graphs: what a row sees is what counts, not what else is in the batch or
// what was asked before; and as target and drafter of the whole engine.
#include "as2d/models/llama.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "as2d/engine.h"
#include "as2d/error.h"
#include "bundles_for_test.h"

namespace as2d {
namespace {

using namespace std::chrono_literals;
using Tokens = std::vector<TokenId>;

std::shared_ptr<LlamaModel> LoadModel(const std::string& name = "speaker") {
  return std::make_shared<LlamaModel>(TestRuntime(), Bundle::Open(BundlePath(name)),
                                      WorkerPool::Unpinned("test", 1));
}

/// Some words, never the end.
Tokens Words(std::size_t count, unsigned seed) {
  Tokens words;
  for (std::size_t i = 0; i < count; ++i) {
    seed = seed * 1664525U + 1013904223U;
    words.push_back(static_cast<TokenId>((seed >> 8) % 250));
  }
  return words;
}

Row At(TokenId token, int at, int slot = 0) {
  return {.token = token, .position = at, .slot = slot, .at = at};
}

/// Tokens and how sure of each the model was.
struct Said {
  Tokens tokens;
  std::vector<float> log_probs;

  bool operator==(const Said&) const = default;
};

class LlamaTest : public testing::Test {
 protected:
  /// What comes after each of `text`, in steps of so many rows.
  Said Follow(const Tokens& text, std::size_t rows, int slot = 0) {
    Said said;
    for (std::size_t first = 0; first < text.size(); first += rows) {
      std::vector<Row> step;
      for (std::size_t i = first; i < std::min(first + rows, text.size()); ++i) {
        step.push_back(At(text[i], static_cast<int>(i), slot));
      }
      Tokens next(step.size());
      model_->Forward(step, next);
      for (std::size_t i = 0; i < step.size(); ++i) {
        said.tokens.push_back(next[i]);
        said.log_probs.push_back(model_->log_probability(i));
      }
    }
    return said;
  }

  TokenId After(const Tokens& text, int slot = 0) {
    return LlamaTarget(model_).Prompt(text, {}, slot).token;
  }

  const std::shared_ptr<LlamaModel> model_ = LoadModel();
};

TEST_F(LlamaTest, StepsOfAnyNumberOfRowsSayTheSame) {
  const Tokens text = Words(64, 1);
  const Said alone = Follow(text, 1);
  for (const std::size_t rows : {2U, 8U, 32U, 64U}) {
    EXPECT_EQ(Follow(text, rows), alone) << rows << " rows, bit for bit";
  }
  model_->ReserveSlots(3);
  for (const int slot : {2, 0}) EXPECT_EQ(Follow(text, 8, slot), alone) << "in slot " << slot;
}

TEST_F(LlamaTest, ARunBesideAnotherSaysWhatItWouldAloneAndTakesItsPlace) {
  const Tokens text = Words(12, 2);
  const Said alone = Follow(text, 1);
  Follow(Tokens(text.begin(), text.begin() + 8), 8);
  std::vector<Row> rows;
  for (int i = 0; i < 3; ++i) rows.push_back(At(7, 8 + i));  // a wrong one
  for (int i = 0; i < 3; ++i) {
    rows.push_back({.token = text[static_cast<std::size_t>(8 + i)],
                    .position = 8 + i,
                    .slot = 0,
                    .at = 11 + i,
                    .shared = 8,
                    .begin = 11});
  }
  Tokens next(rows.size());
  model_->Forward(rows, next);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(next[3 + i], alone.tokens[8 + i]);
    EXPECT_EQ(model_->log_probability(3 + i), alone.log_probs[8 + i]) << "bit for bit";
  }
  model_->Move(0, 11, 8, 3);
  Tokens last(1);
  model_->Forward(std::vector{At(text[11], 11)}, last);
  EXPECT_EQ(last[0], alone.tokens[11]);
  EXPECT_EQ(model_->log_probability(0), alone.log_probs[11]);
}

TEST_F(LlamaTest, APromptOfSeveralBlocksSaysWhatItsRowsDo) {
  const Tokens text = Words(LlamaModel::kBlockRows + 20, 3);
  const Said alone = Follow(text, 1);
  const auto model = LoadModel();
  EXPECT_EQ(LlamaTarget(model).Prompt(text, {}, 0).token, alone.tokens.back());
  EXPECT_EQ(model->log_probability(0), alone.log_probs.back()) << "bit for bit";
}

TEST_F(LlamaTest, WhatAPromptHasInCommonWithTheLastIsNotComputedAgain) {
  Tokens text = Words(100, 4);
  EXPECT_FALSE(model_->Feed(text, 0)) << "more than a block";
  EXPECT_TRUE(model_->Feed(text, 0));
  EXPECT_EQ(model_->Held(text, 0), 100U);
  EXPECT_TRUE(model_->Feed(text, 0)) << "its last token alone";
  const TokenId again = model_->next();
  text.resize(99);
  const Tokens others = Words(5, 5);
  text.insert(text.end(), others.begin(), others.end());
  EXPECT_EQ(model_->Held(text, 0), 99U);
  EXPECT_TRUE(model_->Feed(text, 0)) << "what is new of it fits one block";
  const TokenId next = model_->next();
  const float sure = model_->log_probability(0);
  const auto fresh = LoadModel();
  EXPECT_EQ(LlamaTarget(fresh).Prompt(text, {}, 0).token, next);
  EXPECT_EQ(fresh->log_probability(0), sure) << "bit for bit";
  EXPECT_EQ(LlamaTarget(fresh).Prompt(Words(100, 4), {}, 0).token, again);
}

TEST_F(LlamaTest, AFirstTokenIsDrawnAsARowsIs) {
  const Tokens text = Words(12, 13);
  LlamaTarget target(model_);
  std::set<TokenId> drawn;
  for (std::uint32_t seed = 0; seed < 8; ++seed) {
    const Choice choice = {.temperature = 30, .seed = seed};
    const FirstToken first = target.Prompt(text, choice, 0);
    drawn.insert(first.token);
    Row row = At(text.back(), 11);
    row.choice = choice;
    Tokens next(1);
    std::vector<float> log_probability(1);
    target.Forward(std::vector{row}, next, log_probability);
    EXPECT_EQ(next[0], first.token);
    EXPECT_EQ(log_probability[0], first.log_probability) << "bit for bit";
    EXPECT_LE(log_probability[0], 0);
  }
  EXPECT_GT(drawn.size(), 1U);
}

TEST_F(LlamaTest, AStepThatOverwritesAPromptIsNotTakenForIt) {
  const Tokens text = Words(20, 6);
  const TokenId expected = After(text);
  Tokens next(1);
  model_->Forward(std::vector{At(3, 5)}, next);
  EXPECT_EQ(model_->Held(text, 0), 5U);
  EXPECT_EQ(After(text), expected);
}

TEST_F(LlamaTest, RefusesRowsThatDoNotFit) {
  Tokens next(1);
  EXPECT_THROW(model_->Forward(std::vector{At(1, model_->context())}, next), Error);
  EXPECT_THROW(model_->Forward(std::vector{At(1, 0, 1)}, next), Error) << "no such slot";
  EXPECT_THROW(model_->Forward(std::vector{At(model_->vocabulary_size() + 20, 0)}, next), Error);
  EXPECT_THROW(model_->Forward({}, next), Error);
}

TEST_F(LlamaTest, EveryTokenThatEndsIsTheEnd) {
  const Tokens text = Words(30, 7);
  const TokenId said = After(text);
  const ChangedBundle changed("speaker", "ends: ", "ends: 260 " + std::to_string(said));
  const auto model = std::make_shared<LlamaModel>(TestRuntime(), Bundle::Open(changed.folder()),
                                                  WorkerPool::Unpinned("test", 1));
  EXPECT_EQ(LlamaTarget(model).Prompt(text, {}, 0).token, 260);
  LlamaDrafter drafter(model);
  Window window;
  window.prompt = text;
  window.max_tokens = 10;
  drafter.Begin(window, {});
  Tokens tokens;
  EXPECT_FALSE(drafter.Next(&tokens));
  EXPECT_TRUE(tokens.empty());
}

TEST_F(LlamaTest, ADrafterFollowsAnotherHistory) {
  Window window;
  window.prompt = Words(LlamaModel::kBlockRows + 5, 8);
  window.max_tokens = 12;
  LlamaDrafter drafter(model_);
  drafter.Begin(window, {});
  EXPECT_TRUE(drafter.encoding());
  Tokens said;
  while (drafter.Next(&said)) {
  }
  EXPECT_FALSE(drafter.encoding()) << "the prompt is read";
  const Tokens history = Words(4, 9);
  drafter.Follow(history);
  Tokens more;
  drafter.Next(&more);
  Tokens whole = window.prompt;
  whole.insert(whole.end(), history.begin(), history.end());
  const auto fresh = LoadModel();
  const TokenId expected = LlamaTarget(fresh).Prompt(whole, {}, 0).token;
  EXPECT_EQ(more, expected == fresh->end_token() ? Tokens{} : Tokens{expected});
}

TEST_F(LlamaTest, ADrafterTakesItsOwnPromptAndRefusesWhatDoesNotFit) {
  Window window;
  window.prompt = Words(10, 10);
  window.draft_prompt = Words(20, 11);
  window.max_tokens = 1;
  LlamaDrafter drafter(model_);
  drafter.Begin(window, {});
  Tokens said;
  drafter.Next(&said);
  EXPECT_EQ(model_->Held(window.draft_prompt, 0), 20U);
  window.draft_prompt = Words(static_cast<std::size_t>(model_->context()), 12);
  EXPECT_THROW(drafter.Begin(window, {}), Error);
}

// The whole engine.

using Texts = std::map<std::int64_t, Tokens>;

/// How answers are drawn. These models are so sure of themselves that it takes a high temperature.
struct Drawn {
  float temperature = 0;
  std::uint32_t seed = 0;
};

Texts Answer(Engine& engine, Method method, std::size_t windows_at_once = 1, Drawn drawn = {}) {
  RunOptions options;
  options.adaptive = true;
  options.batch = windows_at_once;
  const auto run = engine.Start(method, 4, std::move(options));
  for (int i = 0; i < 3; ++i) {
    Window window;
    window.index = i;
    window.prompt = Words(30, 20);  // several questions about one text
    window.prompt.push_back(i);
    window.max_tokens = 40;
    window.source = Words(30, 21);
    window.temperature = drawn.temperature;
    window.seed = drawn.seed;
    run->Submit(std::move(window));
  }
  run->Finish();
  Texts texts;
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  while (std::chrono::steady_clock::now() < deadline) {
    for (const Event& event : run->Poll(0.1s)) {
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

Engine MakeEngine() { return Engine(std::getenv("AS2D_ORT_LIBRARY"), BundlePath("speaker"), {}); }

TEST(LlamaEngineTest, EveryMethodWithEveryDrafterSaysTheSame) {
  Engine engine = MakeEngine();
  const Texts alone = Answer(engine, Method::kTarget);
  ASSERT_EQ(alone.size(), 3U);
  EXPECT_NE(alone.at(0), alone.at(1)) << "another question, another answer";
  EXPECT_EQ(Answer(engine, Method::kLookup), alone);
  EXPECT_EQ(Answer(engine, Method::kBatched, 3), alone);
  for (const std::string drafter : {"speaker", "prompter"}) {
    engine.LoadDrafter(BundlePath(drafter), {});
    for (const Method method : {Method::kAs2d, Method::kCoupled, Method::kAdaptive, Method::kPearl,
                                Method::kMulti, Method::kAnchored}) {
      EXPECT_EQ(Answer(engine, method), alone) << drafter << ", method " << int(method);
    }
  }
}

TEST(LlamaEngineTest, WhatIsDrawnIsTheSameWhateverIsDrafted) {
  Engine engine = MakeEngine();
  const Drawn drawn = {.temperature = 30, .seed = 5};
  const Texts alone = Answer(engine, Method::kTarget, 1, drawn);
  EXPECT_NE(alone, Answer(engine, Method::kTarget)) << "the likeliest tokens";
  EXPECT_NE(alone, Answer(engine, Method::kTarget, 1, {.temperature = 30, .seed = 6}));
  EXPECT_EQ(Answer(engine, Method::kTarget, 1, drawn), alone) << "once more";
  EXPECT_EQ(Answer(engine, Method::kLookup, 1, drawn), alone);
  EXPECT_EQ(Answer(engine, Method::kBatched, 3, drawn), alone);
  engine.LoadDrafter(BundlePath("speaker"), {});
  for (const Method method : {Method::kAs2d, Method::kCoupled, Method::kPearl, Method::kMulti}) {
    EXPECT_EQ(Answer(engine, method, 1, drawn), alone) << "method " << int(method);
  }
}

TEST(LlamaEngineTest, SpeechAndLanguageModelsDoNotDraftForEachOther) {
  Engine engine = MakeEngine();
  EXPECT_THROW(engine.LoadDrafter(BundlePath("one"), {}), Error);
  Engine speech(std::getenv("AS2D_ORT_LIBRARY"), BundlePath("one"), {});
  EXPECT_THROW(speech.LoadDrafter(BundlePath("speaker"), {}), Error);
  EXPECT_THROW(engine.LanguageProbabilities({}), Error);
}

TEST(LlamaEngineTest, StepsAreMeasured) {
  Engine engine = MakeEngine();
  const std::vector<int> rows = {1, 4};
  const auto times = engine.TimeSteps(rows, 2, {});
  ASSERT_EQ(times.size(), 2U);
  for (const auto& samples : times) EXPECT_EQ(samples.size(), 2U);
}

}  // namespace
}  // namespace as2d
