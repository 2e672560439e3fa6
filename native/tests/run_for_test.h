// Runs of scripted models, for the tests of the lanes and of the strategies.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "as2d/decode/run.h"
#include "as2d/decode/scripted.h"
#include "as2d/decode/strategies/decoupled.h"
#include "as2d/decode/strategy.h"

namespace as2d {

using namespace std::chrono_literals;
using Tokens = std::vector<TokenId>;

inline constexpr TokenId kEnd = 999;
inline const Tokens kPrompt = {900, 901, 902, 903};

inline Tokens Text(std::size_t length, unsigned seed = 1) {
  std::mt19937 random(seed);
  Tokens text;
  for (std::size_t i = 0; i < length; ++i) text.push_back(static_cast<TokenId>(random() % 500));
  return text;
}

inline Window MakeWindow(std::int64_t index, int max_tokens = 400, Tokens prompt = kPrompt) {
  Window window;
  window.index = index;
  window.samples = {static_cast<float>(index)};
  window.prompt = std::move(prompt);
  window.max_tokens = max_tokens;
  return window;
}

struct Result {
  std::map<std::int64_t, Tokens> committed;  // as told token by token
  std::map<std::int64_t, Tokens> finished;   // as told at the end of the window
  std::map<std::int64_t, FinishReason> reasons;
  std::map<std::int64_t, Tokens> drafts;
  std::vector<std::string> lost;
  std::string error;
  bool cancelled = false;
  bool run_finished = false;
};

/// Reads events until the run is over.
inline Result Collect(as2d::Run& run, std::chrono::duration<double> patience = 20s) {
  Result result;
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!result.run_finished && std::chrono::steady_clock::now() < deadline) {
    for (const Event& event : run.Poll(0.05s)) {
      EXPECT_FALSE(result.run_finished) << "an event after the last one";
      switch (event.kind) {
        case Event::Kind::kTokensCommitted: {
          Tokens& tokens = result.committed[event.window];
          tokens.insert(tokens.end(), event.tokens.begin(), event.tokens.end());
          break;
        }
        case Event::Kind::kWindowFinished:
          result.finished[event.window] = event.tokens;
          result.reasons[event.window] = event.reason;
          result.drafts[event.window] = event.draft;
          break;
        case Event::Kind::kDrafterLost:
          result.lost.push_back(event.message);
          break;
        case Event::Kind::kRunFinished:
          result.run_finished = true;
          result.cancelled = !event.finished;
          result.error = event.message;
          break;
        default:
          break;
      }
    }
  }
  EXPECT_TRUE(result.run_finished) << "the run did not end";
  return result;
}

/// Another target, for tests that look at its calls or hold them up.
class WrappedTarget : public TargetModel {
 public:
  explicit WrappedTarget(std::shared_ptr<TargetModel> target) : target_(std::move(target)) {}

  void Encode(std::span<const float> samples, int slot) override { target_->Encode(samples, slot); }
  ChoiceRules Rules(const Window& window) const override { return target_->Rules(window); }
  FirstToken Prompt(std::span<const TokenId> prompt, const Choice& choice, int slot) override {
    return target_->Prompt(prompt, choice, slot);
  }
  void Forward(std::span<const Row> rows, std::span<TokenId> next,
               std::span<float> log_probability) override {
    target_->Forward(rows, next, log_probability);
  }
  void Move(int slot, int from, int to, int count) override {
    target_->Move(slot, from, to, count);
  }
  std::span<const float> encoding() const override { return target_->encoding(); }
  std::size_t encoding_width() const override { return target_->encoding_width(); }
  int slots() const override { return target_->slots(); }
  int context() const override { return target_->context(); }
  TokenId end_token() const override { return target_->end_token(); }
  int vocabulary_size() const override { return target_->vocabulary_size(); }
  bool even_rows_only() const override { return target_->even_rows_only(); }
  void Cancel() override { target_->Cancel(); }
  void ClearCancel() override { target_->ClearCancel(); }

 private:
  const std::shared_ptr<TargetModel> target_;
};

/// Waits for what a test counts on; false when it does not come.
inline bool WaitUntil(const std::function<bool()>& ready) {
  const auto deadline = std::chrono::steady_clock::now() + 20s;
  while (!ready()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(200us);
  }
  return true;
}

/// Says its script like any other, but begins no window before as many tokens are drafted as a test
/// counts on: what the target makes of a draft must not hang on how busy the machine is.
class PatientTarget final : public WrappedTarget {
 public:
  PatientTarget(std::shared_ptr<TargetModel> target, std::function<bool()> ready)
      : WrappedTarget(std::move(target)), ready_(std::move(ready)) {}

  void Encode(std::span<const float> samples, int slot) override {
    WaitUntil(ready_);
    WrappedTarget::Encode(samples, slot);
  }

 private:
  const std::function<bool()> ready_;
};

class RunTest : public testing::Test {
 protected:
  std::unique_ptr<as2d::Run> Start(std::shared_ptr<ScriptedDrafter> drafter,
                                   std::size_t budget = 8) {
    std::shared_ptr<Drafter> shared;
    if (drafter) {
      shared = std::make_shared<Drafter>();
      shared->model = std::move(drafter);
    }
    return Start(shared, budget);
  }

  std::unique_ptr<as2d::Run> Start(const std::shared_ptr<Drafter>& drafter, std::size_t budget) {
    if (ahead_ > 0 && !gate_) gate_ = [this] { return counters().drafted.Get() >= ahead_; };
    if (!gate_) return StartOn(target_, drafter, budget);
    return StartOn(std::make_shared<PatientTarget>(target_, gate_), drafter, budget);
  }

  std::unique_ptr<as2d::Run> StartOn(std::shared_ptr<TargetModel> target,
                                     const std::shared_ptr<Drafter>& drafter, std::size_t budget) {
    const StrategyFactory strategy = [&](Counters* counters) -> std::unique_ptr<Strategy> {
      if (strategy_) return strategy_(budget, counters);
      if (!drafter) return std::make_unique<TargetOnly>();
      return std::make_unique<DecoupledDrafting>(std::make_shared<const TokenKeys>(),
                                                 std::make_unique<FixedBudget>(budget), counters);
    };
    return std::make_unique<as2d::Run>(std::move(target), drafter, strategy, options_);
  }

  void Target(Script script, ScriptedTarget::Options options = {}) {
    script_ = script;
    target_ = std::make_shared<ScriptedTarget>(std::move(script), options);
  }

  static std::shared_ptr<ScriptedDrafter> Draft(Script script,
                                                ScriptedDrafter::Options options = {}) {
    return std::make_shared<ScriptedDrafter>(std::move(script), options);
  }

  /// Runs all windows of the script and expects the target's own text in each.
  Result ExpectExact(std::shared_ptr<ScriptedDrafter> drafter, std::size_t budget = 8) {
    return ExpectExactOf(Start(std::move(drafter), budget));
  }

  Result ExpectExactOf(std::unique_ptr<as2d::Run> run) {
    run_ = std::move(run);
    for (const auto& [index, text] : script_) run_->Submit(MakeWindow(index));
    run_->Finish();
    Result result = Collect(*run_);
    EXPECT_EQ(result.error, "");
    EXPECT_FALSE(result.cancelled);
    for (const auto& [index, text] : script_) {
      EXPECT_EQ(result.committed[index], text) << "window " << index;
      EXPECT_EQ(result.finished[index], text) << "window " << index;
      EXPECT_EQ(result.reasons[index], FinishReason::kEnd);
    }
    return result;
  }

  const Counters& counters() const { return run_->counters(); }

  std::int64_t Steps() const {
    std::int64_t steps = 0;
    for (const Counter& count : counters().steps) steps += count.Get();
    return steps;
  }

  /// A target slow enough that a drafter without delays is always far ahead.
  static ScriptedTarget::Options Slow() {
    ScriptedTarget::Options options;
    options.encode_time = 20ms;
    options.step_time = 200us;
    return options;
  }

  Script script_;
  RunOptions options_;
  /// Another one than DecoupledDrafting with a drafter and TargetOnly without.
  std::function<std::unique_ptr<Strategy>(std::size_t budget, Counters*)> strategy_;
  std::int64_t ahead_ = 0;      // draft tokens that the target waits for before its first window
  std::function<bool()> gate_;  // or what else it waits for
  std::shared_ptr<ScriptedTarget> target_;
  std::unique_ptr<as2d::Run> run_;
};

}  // namespace as2d
