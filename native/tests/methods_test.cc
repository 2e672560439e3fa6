// Whole runs by every strategy over scripted models with known outcomes: the text is the target's
// own, and what can be counted by hand is.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "as2d/decode/budget.h"
#include "as2d/decode/strategies/anchored.h"
#include "as2d/decode/strategies/coupled.h"
#include "as2d/decode/strategies/decoupled.h"
#include "as2d/decode/strategies/lookup.h"
#include "as2d/decode/strategies/multi.h"
#include "as2d/decode/strategies/pearl.h"
#include "as2d/text/retokenizer.h"
#include "run_for_test.h"

namespace as2d {
namespace {

using Ending = ScriptedDrafter::Ending;

const std::vector<std::string> kMethods = {"target", "as2d",  "coupled", "adaptive",
                                           "pearl",  "multi", "lookup",  "anchored"};

bool IsCoupled(const std::string& method) {
  return method == "coupled" || method == "adaptive" || method == "pearl" || method == "anchored";
}

std::unique_ptr<Strategy> Make(const std::string& method, std::size_t budget, Counters* counters) {
  const auto keys = std::make_shared<const TokenKeys>();
  if (method == "as2d") {
    return std::make_unique<DecoupledDrafting>(keys, std::make_unique<FixedBudget>(budget),
                                               counters);
  }
  if (method == "coupled") {
    return std::make_unique<CoupledDrafting>(std::make_unique<FixedBudget>(budget));
  }
  if (method == "adaptive") {
    return std::make_unique<CoupledDrafting>(std::make_unique<AdaptiveBudget>(budget), 0.5F);
  }
  if (method == "pearl") return std::make_unique<PearlDrafting>(budget);
  if (method == "anchored") {
    return std::make_unique<AnchoredDrafting>(std::make_unique<FixedBudget>(budget), counters);
  }
  if (method == "multi") return std::make_unique<MultiDrafting>(keys, budget, counters);
  if (method == "lookup") return std::make_unique<LookupDrafting>(budget);
  return std::make_unique<TargetOnly>();
}

/// Says its script's token n after n tokens of history, whatever they are: unlike a ScriptedDrafter
/// it is right again after a correction.
class SteadyDrafter final : public DraftModel {
 public:
  explicit SteadyDrafter(Script script, bool needs_encoding = false)
      : script_(std::move(script)), needs_encoding_(needs_encoding) {}

  bool needs_encoding() const override { return needs_encoding_; }
  void Begin(const Window& window, std::span<const float>) override {
    text_ = script_[window.index];
    said_ = 0;
    encoded_ = false;
  }
  bool Next(std::vector<TokenId>* tokens) override {
    if (!std::exchange(encoded_, true)) return true;
    if (said_ >= text_.size()) return false;
    tokens->push_back(text_[said_++]);
    return true;
  }
  void Follow(std::span<const TokenId> history) override { said_ = history.size(); }
  bool encoding() const override { return !encoded_; }
  float confidence() const override { return 1; }
  void Cancel() override {}
  void ClearCancel() override {}

 private:
  Script script_;
  const bool needs_encoding_;
  Tokens text_;
  std::size_t said_ = 0;
  bool encoded_ = false;
};

/// 0, 3, 6, ...: no token comes twice, and none is one more than another.
Tokens Distinct(std::size_t length) {
  Tokens text;
  for (std::size_t i = 0; i < length; ++i) text.push_back(static_cast<TokenId>(3 * i));
  return text;
}

Tokens Periodic(std::size_t length, std::size_t period) {
  Tokens text;
  for (std::size_t i = 0; i < length; ++i) text.push_back(static_cast<TokenId>(3 * (i % period)));
  return text;
}

class MethodTest : public RunTest {
 protected:
  void Use(const std::string& method) {
    options_.coupled = IsCoupled(method);
    options_.patience = 20s;  // no drafter is given up because the machine is busy
    strategy_ = [method](std::size_t budget, Counters* counters) {
      return Make(method, budget, counters);
    };
  }

  std::unique_ptr<as2d::Run> StartWith(std::shared_ptr<DraftModel> model, std::size_t budget) {
    const auto shared = std::make_shared<Drafter>();
    shared->model = std::move(model);
    return Start(shared, budget);
  }

  std::int64_t Accepted() const { return counters().accepted.Get(); }
  std::int64_t Proposed() const { return counters().proposed.Get(); }
};

// Coupled.

TEST_F(MethodTest, CoupledDrafterThatIsAlwaysRight) {
  Use("coupled");
  Target({{0, Distinct(73)}});
  ExpectExact(Draft({{0, Distinct(73)}}), 8);
  // One token from the prompt, then 9 a step: 73 = 1 + 8 * 9. The end is a draft of its own.
  EXPECT_EQ(Steps(), 9);
  EXPECT_EQ(counters().steps[8].Get(), 8);
  EXPECT_EQ(counters().steps[1].Get(), 1);
  EXPECT_EQ(Proposed(), 65);
  EXPECT_EQ(Accepted(), 65);
  EXPECT_EQ(counters().drafted.Get(), 65);
}

TEST_F(MethodTest, ACoupledTargetThatWaitsIsIdle) {
  Use("coupled");
  Target({{0, Distinct(28)}});
  run_ = Start(Draft({{0, Distinct(28)}}), 8);
  run_->Submit(MakeWindow(0));
  run_->Finish();
  std::vector<Activity> target;
  for (bool over = false; !over;) {
    for (const Event& event : run_->Poll(20s)) {
      over = over || event.kind == Event::Kind::kRunFinished;
      if (event.kind == Event::Kind::kLaneChanged && event.lane == LaneName::kTarget) {
        target.push_back(event.activity);
      }
    }
  }
  // 28 = 1 + 3 * 9, and a step for the end.
  EXPECT_EQ(std::ranges::count(target, Activity::kVerifying), 4);
  for (std::size_t i = 1; i < target.size(); ++i) {
    if (target[i] != Activity::kVerifying) continue;
    EXPECT_EQ(target[i - 1], Activity::kIdle);
  }
}

TEST_F(MethodTest, CoupledDrafterThatIsAlwaysWrong) {
  Use("coupled");
  Target({{0, Distinct(40)}});
  ExpectExact(Draft({{0, Tokens(60, 777)}}), 8);
  EXPECT_EQ(Steps(), 40);
  EXPECT_EQ(Proposed(), 40 * 8);
  EXPECT_EQ(Accepted(), 0);
}

TEST_F(MethodTest, CoupledDrafterThatIsRightEveryOtherTime) {
  Use("coupled");
  Tokens draft = Distinct(80);
  for (std::size_t i = 0; i < draft.size(); i += 2) draft[i] = 777;
  Target({{0, Distinct(80)}});
  ExpectExactOf(StartWith(std::make_shared<SteadyDrafter>(Script{{0, draft}}), 8));
  // The prompt gives the wrong first one. Then each draft is right once: two tokens a step, up to
  // 79 after 39 steps; the last accepts the last token and the end.
  EXPECT_EQ(Steps(), 40);
  EXPECT_EQ(Accepted(), 39 + 2);
  EXPECT_EQ(Proposed(), 37 * 8 + 6 + 4 + 2) << "cut where the draft ends";
}

TEST_F(MethodTest, CoupledDrafterThatSaysNothingButItsEnd) {
  Use("coupled");
  Target({{0, Distinct(20)}});
  ExpectExactOf(StartWith(std::make_shared<SteadyDrafter>(Script{}), 8));
  EXPECT_EQ(Steps(), 20);
  EXPECT_EQ(Proposed(), 20) << "its end is a proposal like any other";
  EXPECT_EQ(Accepted(), 1);
}

TEST_F(MethodTest, CoupledTargetAsItsOwnDrafterWithEveryBudget) {
  Use("coupled");
  for (const std::size_t budget : {1U, 2U, 3U, 8U, 16U, 100U}) {
    Target({{0, Distinct(50)}});
    ExpectExact(Draft({{0, Distinct(50)}}), budget);
    // 49 tokens and the end after the first one, budget + 1 a step.
    EXPECT_EQ(Steps(),
              static_cast<std::int64_t>(50 + budget) / static_cast<std::int64_t>(budget + 1));
    EXPECT_EQ(Accepted(), Proposed());
  }
}

TEST_F(MethodTest, CoupledStopsAtTheLimitAndTheContext) {
  Use("coupled");
  const Tokens text = Distinct(100);
  for (int room = 1; room < 24; ++room) {
    for (const bool context : {false, true}) {
      if (context && room < 2) continue;  // refused
      ScriptedTarget::Options target;
      if (context) target.context = static_cast<int>(kPrompt.size()) + room;
      Target({{0, text}}, target);
      run_ = Start(Draft({{0, text}}), 8);
      run_->Submit(MakeWindow(0, context ? 400 : room));
      run_->Finish();
      Result result = Collect(*run_);
      EXPECT_EQ(result.error, "");
      EXPECT_EQ(result.finished[0], Tokens(text.begin(), text.begin() + room)) << room;
      EXPECT_EQ(result.reasons[0], context ? FinishReason::kContext : FinishReason::kLimit);
    }
  }
}

TEST_F(MethodTest, CoupledAcrossVocabularies) {
  Use("coupled");
  const Vocabulary words({"", " the", " cat", " sat", " on", " a", " mat"}, false);
  const Vocabulary pieces({"", " t", "he", " c", "at", " s", " o", "n", " ", "a", " m"}, false);
  const WordTokenizer to_words(words);
  const WordTokenizer to_pieces(pieces);
  const Tokens text = {1, 2, 3, 4, 5, 6, 2};  // " the cat sat on a mat cat"
  const auto drafter = std::make_shared<Drafter>();
  drafter->model =
      Draft({{0, {1, 2, 3, 4, 5, 4, 6, 7, 8, 9, 10, 4, 3, 4}}}, {.ending = Ending::kEnd});
  drafter->make_retokenizer = [&] { return std::make_unique<Retokenizer>(pieces, to_words); };
  drafter->make_history_retokenizer = [&] {
    return std::make_unique<Retokenizer>(words, to_pieces);
  };
  Target({{0, text}});
  ExpectExactOf(Start(drafter, 4));
  // Four pieces are two words: three words a step, and the end.
  EXPECT_EQ(Steps(), 3);
  EXPECT_EQ(Proposed(), 5);
  EXPECT_EQ(Accepted(), 5);
}

TEST_F(MethodTest, CoupledWithoutDrafterIsTheTargetAlone) {
  for (const std::string& method : kMethods) {
    Use(method);
    Target({{0, Distinct(30)}});
    ExpectExact(nullptr);
    EXPECT_EQ(counters().steps[0].Get(), 30) << method;
    EXPECT_EQ(Proposed(), 0);
  }
}

// Adaptive.

TEST_F(MethodTest, AdaptiveDraftsMoreAsLongAsItIsRight) {
  Use("adaptive");
  Target({{0, Distinct(73)}});
  ExpectExact(Draft({{0, Distinct(73)}}), 8);
  // 4, 6, then 8 candidates: the prompt gives 1 token, the steps 5, 7 and six times 9; the last one
  // takes 6 and the end.
  EXPECT_EQ(counters().steps[4].Get(), 1);
  EXPECT_EQ(counters().steps[6].Get(), 1);
  EXPECT_EQ(counters().steps[8].Get(), 6);
  EXPECT_EQ(counters().steps[7].Get(), 1);
  EXPECT_EQ(Steps(), 9);
  EXPECT_EQ(Accepted(), 65);
}

TEST_F(MethodTest, AdaptiveDraftsLessWhereItIsWrong) {
  Use("adaptive");
  Target({{0, Distinct(10)}});
  ExpectExact(Draft({{0, Tokens(60, 777)}}, {.confidence = 2}), 8);
  // What strays has half the confidence, so it is not that which stops it: 4, 3, 2, then 1.
  EXPECT_EQ(Steps(), 10);
  EXPECT_EQ(Proposed(), 4 + 3 + 2 + 7);
  EXPECT_EQ(Accepted(), 0);
}

TEST_F(MethodTest, AdaptiveStopsWhereTheDrafterIsUnsure) {
  options_.coupled = true;
  options_.patience = 20s;
  strategy_ = [](std::size_t budget, Counters*) {
    return std::make_unique<CoupledDrafting>(std::make_unique<FixedBudget>(budget), 0.5F);
  };
  Target({{0, Distinct(51)}});
  ExpectExact(Draft({{0, Distinct(51)}}, {.confidence = 0.8F}), 8);
  // 0.8^4 is the first below a half: four candidates, five tokens a step, and the end.
  EXPECT_EQ(counters().steps[4].Get(), 10);
  EXPECT_EQ(counters().steps[1].Get(), 1);
  EXPECT_EQ(Steps(), 11);
  EXPECT_EQ(counters().drafted.Get(), 41) << "what is not proposed was not drafted";
}

// Re-anchored.

TEST_F(MethodTest, AnchoredDrafterIsPutRightWhereItIsWrong) {
  Use("anchored");
  Tokens draft = Distinct(40);
  draft[20] = 777;
  Target({{0, Distinct(40)}}, {.step_time = 2ms});
  ExpectExactOf(StartWith(std::make_shared<SteadyDrafter>(Script{{0, draft}}), 8));
  EXPECT_GE(counters().realignments.Get(), 1);
  EXPECT_GT(Accepted(), 0);
}

// PEARL.

TEST_F(MethodTest, PearlDrafterThatIsAlwaysRight) {
  Use("pearl");
  Target({{0, Distinct(73)}});
  ExpectExact(Draft({{0, Distinct(73)}}), 8);
  // A reply is eight tokens, and the first of them is the target's own: seven candidates, eight
  // tokens a step. 73 = 1 + 9 * 8, and the end.
  EXPECT_EQ(Steps(), 10);
  EXPECT_EQ(counters().steps[7].Get(), 9);
  EXPECT_EQ(counters().steps[1].Get(), 1);
  EXPECT_EQ(Accepted(), 64);
}

TEST_F(MethodTest, PearlDrafterThatIsAlwaysWrong) {
  Use("pearl");
  Target({{0, Distinct(40)}});
  ExpectExactOf(StartWith(std::make_shared<SteadyDrafter>(Script{{0, Tokens(60, 777)}}), 8));
  EXPECT_EQ(counters().steps[0].Get(), 40) << "the first token of no draft held";
  EXPECT_EQ(Proposed(), 0);
}

TEST_F(MethodTest, PearlDrafterThatIsRightEveryOtherTime) {
  Use("pearl");
  Tokens draft = Distinct(20);
  for (std::size_t i = 0; i < draft.size(); i += 2) draft[i] = 777;
  Target({{0, Distinct(20)}});
  ExpectExactOf(StartWith(std::make_shared<SteadyDrafter>(Script{{0, draft}}), 8));
  // By turns a step alone, whose token the new draft has right, and a step whose first candidate is
  // wrong. The last candidate of all is the end.
  EXPECT_EQ(Steps(), 20);
  EXPECT_EQ(counters().steps[0].Get(), 10);
  EXPECT_EQ(Proposed(), 7 * 7 + 5 + 3 + 1);
  EXPECT_EQ(Accepted(), 1);
}

TEST_F(MethodTest, PearlDoesNotHoldUpAWindowForADraftThatIsOfNoUse) {
  // All of the text is there when the drafter hangs: in the request made for the step after it.
  Use("pearl");
  options_.patience = 1000s;
  options_.draft_grace = 0.1s;
  const Tokens text = Distinct(30);
  Target({{0, text}});
  const auto hanging =
      Draft({{0, Tokens(text.begin(), text.begin() + 4)}}, {.ending = Ending::kHang});
  const auto shared = std::make_shared<Drafter>();
  shared->model = hanging;
  run_ = Start(shared, 4);
  run_->Submit(MakeWindow(0, 4));
  run_->Finish();
  Result result = Collect(*run_);
  EXPECT_EQ(result.finished[0], Tokens(text.begin(), text.begin() + 4));
  EXPECT_EQ(result.reasons[0], FinishReason::kLimit);
  run_.reset();
  hanging->Release();
  while (shared.use_count() > 1) std::this_thread::sleep_for(1ms);
}

// Looking up.

TEST_F(MethodTest, LookupFindsWhatRepeats) {
  Use("lookup");
  Target({{0, Periodic(30, 5)}});
  ExpectExact(nullptr, 8);
  // Alone until two tokens have come again, the seventh being the second. From there on a period is
  // known: five candidates, six tokens a step; the last has the end in place of the sixth.
  EXPECT_EQ(counters().steps[0].Get(), 6);
  EXPECT_EQ(counters().steps[5].Get(), 4);
  EXPECT_EQ(Steps(), 10);
  EXPECT_EQ(Accepted(), 20);
}

TEST_F(MethodTest, LookupKnowsTheWindowBefore) {
  Use("lookup");
  Target({{0, Distinct(20)}, {1, Distinct(20)}});
  ExpectExact(nullptr, 8);
  // The prompt's last token and the first of the text are those of the window before: 1 + 9 + 9 + 1
  // and the end. Of the third draft, one token is the text's and the others its prompt's.
  EXPECT_EQ(counters().steps[0].Get(), 20);
  EXPECT_EQ(Steps(), 20 + 3);
  EXPECT_EQ(Accepted(), 8 + 8 + 1);
}

TEST_F(MethodTest, LookupFindsNothingInATextThatNeverRepeats) {
  Use("lookup");
  Target({{0, Distinct(40)}});
  ExpectExact(nullptr, 8);
  EXPECT_EQ(counters().steps[0].Get(), 40);
}

// Several runs.

TEST_F(MethodTest, MultiWhereTheSecondRunWins) {
  Use("multi");
  // One more token in the draft: the first place goes on with it, the second after it.
  const Tokens text = Distinct(31);
  Tokens draft = text;
  draft.insert(draft.begin() + 1, 777);
  ahead_ = 33;
  Target({{0, text}});
  ExpectExact(Draft({{0, draft}}), 4);
  EXPECT_EQ(Steps(), 7) << "1 + 6 * 5, and the end";
  EXPECT_EQ(Accepted(), 6 * 4 + 1);
  EXPECT_EQ(counters().realignments.Get(), 1);
}

TEST_F(MethodTest, MultiWhereWhatWasLookedUpWins) {
  Use("multi");
  ahead_ = 61;
  Target({{0, Periodic(30, 5)}});
  ExpectExact(Draft({{0, Tokens(60, 777)}}), 8);
  EXPECT_EQ(Steps(), 10) << "as by looking up alone";
  EXPECT_EQ(Accepted(), 20);
  EXPECT_EQ(counters().realignments.Get(), 0);
  // Verified from the 7 steps alone on at [1, 15), then at 13, 19 and 25, eight each time.
  EXPECT_EQ(counters().stale_drafts.Get(), 61 - 32);
}

TEST_F(MethodTest, ARunThatIsCutToNothingIsNotTheBest) {
  // Of two runs of which none is accepted, the one that was verified counts.
  Use("multi");
  ahead_ = 4;
  Target({{0, Distinct(2)}});
  ExpectExact(Draft({{0, {0, 1000, 778}}}), 8);
  EXPECT_EQ(Proposed(), 4) << "778 and the end, twice";
  EXPECT_EQ(counters().lead_total.Get(), 4) << "it is these two that were ready";
  EXPECT_EQ(counters().stale_drafts.Get(), 2);
}

TEST_F(MethodTest, ARunBesideOneThatIsCutToNothingNeedsNoMove) {
  Use("multi");
  ahead_ = 7;
  Target({{0, Distinct(5)}});
  ExpectExact(Draft({{0, {0, 1000, 3, 6, 9, 12}}}), 8);
  EXPECT_EQ(Steps(), 1);
  EXPECT_EQ(Accepted(), 5) << "four tokens and the end";
}

// Batches.

class BatchTest : public MethodTest {
 protected:
  void Batch(std::size_t batch, Script script, bool even_rows_only = true) {
    options_.batch = batch;
    options_.batch_apart = 0;
    Target(std::move(script), {.even_rows_only = even_rows_only, .slots = static_cast<int>(batch)});
    gate_ = [this] { return submitted_.load(); };
  }

  /// The target begins once all windows are there.
  Result All(std::shared_ptr<ScriptedDrafter> drafter = nullptr, std::size_t budget = 8) {
    run_ = Start(std::move(drafter), budget);
    for (const auto& [index, text] : script_) run_->Submit(MakeWindow(index));
    run_->Finish();
    submitted_ = true;
    Result result = Collect(*run_);
    EXPECT_EQ(result.error, "");
    EXPECT_EQ(result.finished, script_);
    EXPECT_EQ(result.committed, script_);
    return result;
  }

  std::atomic<bool> submitted_{false};
};

TEST_F(BatchTest, AWindowJoinsWhenTheOthersAreSoFar) {
  Use("target");
  Batch(2, {{0, Text(10)}, {1, Text(10, 2)}}, false);
  options_.batch_apart = 4;
  All();
  // The prompt gives a window its first token, and its end costs a step.
  EXPECT_EQ(target_->steps(), (std::vector<std::size_t>{1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1}));
}

TEST_F(BatchTest, AStepServesAllWindows) {
  Use("target");
  Batch(3, {{0, Text(10)}, {1, Text(20, 2)}, {2, Text(30, 3)}, {3, Text(5, 4)}});
  All();
  // The fourth window takes the place of the first.
  EXPECT_EQ(counters().steps[0].Get(), 30);
  std::vector<std::size_t> rows(15, 4);
  rows.resize(30, 2);
  EXPECT_EQ(target_->steps(), rows) << "three windows and a row to pad, then two, then one and pad";
}

TEST_F(BatchTest, NothingIsPaddedWhereAnyNumberOfRowsIsExact) {
  Use("target");
  Batch(3, {{0, Text(10)}, {1, Text(20, 2)}, {2, Text(30, 3)}}, false);
  All();
  std::vector<std::size_t> rows(10, 3);
  rows.resize(20, 2);
  rows.resize(30, 1);
  EXPECT_EQ(target_->steps(), rows);
}

TEST_F(BatchTest, NoMoreWindowsThanTheTargetHasSlots) {
  Use("target");
  Batch(2, {{0, Text(10)}, {1, Text(10, 2)}, {2, Text(10, 3)}});
  options_.batch = 100;
  All();
  EXPECT_EQ(Steps(), 20);
}

TEST_F(BatchTest, SlotsThatAreNotUsedDoNotMatter) {
  for (const std::string& method : kMethods) {
    Use(method);
    Batch(4, {{0, Text(10)}, {1, Text(10, 2)}});
    options_.batch = 1;
    All(Draft(script_));
    EXPECT_LE(Steps(), 20);
  }
}

TEST_F(BatchTest, CoupledLanesTakeOneWindowAtATime) {
  for (const std::string method : {"coupled", "pearl"}) {
    Use(method);
    std::vector<std::int64_t> steps;
    for (const std::size_t batch : {1U, 4U}) {
      Batch(4, {{0, Distinct(30)}, {1, Distinct(25)}, {2, Distinct(20)}});
      options_.batch = batch;
      All(Draft(script_), 4);
      EXPECT_EQ(Accepted(), Proposed()) << method;
      steps.push_back(Steps());
    }
    EXPECT_EQ(steps[0], steps[1]) << method;
  }
}

TEST_F(BatchTest, EveryWindowHasAStrategyOfItsOwn) {
  Use("as2d");
  options_.max_lead_windows = 3;
  Batch(3, {{0, Distinct(28)}, {1, Distinct(28)}, {2, Distinct(28)}});
  gate_ = [this] { return submitted_ && counters().drafted.Get() >= 3 * 29; };
  All(Draft(script_), 8);
  EXPECT_EQ(Steps(), 4) << "1 + 3 * 9, and the end";
  EXPECT_EQ(counters().steps[24].Get(), 3);
  EXPECT_EQ(Accepted(), Proposed());
}

TEST_F(BatchTest, TheLaneIsIdleOnlyOnceAllWindowsAreDone) {
  Use("target");
  Batch(2, {{0, Text(5)}, {1, Text(40, 2)}});
  run_ = Start(nullptr);
  run_->Submit(MakeWindow(0));
  run_->Submit(MakeWindow(1));
  run_->Finish();
  submitted_ = true;
  int idle = 0;
  int finished = 0;
  for (bool over = false; !over;) {
    for (const Event& event : run_->Poll(1s)) {
      if (event.kind == Event::Kind::kWindowFinished) ++finished;
      if (event.kind == Event::Kind::kLaneChanged && event.activity == Activity::kIdle) {
        ++idle;
        EXPECT_EQ(finished, 2);
      }
      over = over || event.kind == Event::Kind::kRunFinished;
    }
  }
  EXPECT_EQ(idle, 1);
}

TEST_F(BatchTest, CancelGivesUpAllWindowsOfTheBatch) {
  Use("target");
  options_.batch = 3;
  options_.batch_apart = 0;
  Target({{0, Text(300)}, {1, Text(300, 2)}, {2, Text(300, 3)}, {3, Text(300, 4)}},
         {.slots = 3, .step_time = 2ms});
  gate_ = [this] { return submitted_.load(); };
  run_ = Start(nullptr);
  for (const auto& [index, text] : script_) run_->Submit(MakeWindow(index));
  submitted_ = true;
  while (counters().committed.Get() < 12) std::this_thread::sleep_for(1ms);
  run_->Cancel();
  Result result = Collect(*run_);
  EXPECT_TRUE(result.cancelled);
  EXPECT_EQ(result.finished.size(), 3U);
  EXPECT_EQ(result.finished, result.committed);
  for (auto& [index, tokens] : result.finished) {
    EXPECT_EQ(result.reasons[index], FinishReason::kCancelled);
    EXPECT_TRUE(std::equal(tokens.begin(), tokens.end(), script_[index].begin()));
  }
}

// Every strategy with every kind of drafter and several budgets.

enum class Kind : std::uint8_t {
  kRight,
  kWrong,
  kAlternating,
  kEndOnly,
  kNeverEnding,
  kLate,
  kEmpty,
  kThrows,
  kHangs,
};
constexpr std::array kKindNames = {"Right", "Wrong", "Alternating", "EndOnly", "NeverEnding",
                                   "Late",  "Empty", "Throws",      "Hangs"};

using Case = std::tuple<std::string, Kind, bool>;

class OutcomeTest : public MethodTest, public testing::WithParamInterface<Case> {
 protected:
  std::shared_ptr<DraftModel> Model(Kind kind, bool needs_encoding) {
    Script drafts = script_;
    ScriptedDrafter::Options options;
    options.needs_encoding = needs_encoding;
    const auto change = [&](const std::function<void(Tokens&)>& of) {
      for (auto& [index, draft] : drafts) of(draft);
    };
    switch (kind) {
      case Kind::kRight:
        break;
      case Kind::kWrong:
        change([](Tokens& draft) { draft.assign(60, 777); });
        break;
      case Kind::kAlternating:
        change([](Tokens& draft) {
          for (std::size_t i = 0; i < draft.size(); i += 2) draft[i] = 777;
        });
        return std::make_shared<SteadyDrafter>(drafts, needs_encoding);
      case Kind::kEndOnly:
        return std::make_shared<SteadyDrafter>(Script{}, needs_encoding);
      case Kind::kNeverEnding:
        options.ending = Ending::kNever;
        break;
      case Kind::kLate:
        options.encode_time = 3ms;
        break;
      case Kind::kEmpty:
        drafts.clear();
        break;
      case Kind::kThrows:
        options.ending = Ending::kThrow;
        break;
      case Kind::kHangs:
        options.ending = Ending::kHang;
        // Only this drafter is to be given up.
        options_.patience = options_.draft_grace = 20ms;
        break;
    }
    return scripted_ = std::make_shared<ScriptedDrafter>(drafts, options);
  }

  std::shared_ptr<ScriptedDrafter> scripted_;
};

TEST_P(OutcomeTest, TheTextIsTheTargetsOwn) {
  const auto& [method, kind, needs_encoding] = GetParam();
  for (const std::size_t budget : {0U, 1U, 2U, 3U, 8U, 16U}) {
    Use(method);
    options_.encode_ahead = needs_encoding && !IsCoupled(method);
    Target({{0, Distinct(30)}, {1, Periodic(25, 7)}, {2, {}}, {3, Text(1)}}, {.slots = 2});
    const auto shared = std::make_shared<Drafter>();
    shared->model = Model(kind, needs_encoding);
    const Result result = ExpectExactOf(Start(shared, budget));
    const bool fails = kind == Kind::kThrows || kind == Kind::kHangs;
    EXPECT_LE(result.lost.size(), fails ? 1U : 0U);
    EXPECT_EQ(shared->lost, !result.lost.empty());
    // A coupled target that waits asks for what comes after the text: it gets it or learns why not.
    const bool asks = IsCoupled(method) && method != "anchored" && budget > 0;
    EXPECT_GE(result.lost.size(), fails && asks ? 1U : 0U);
    for (const std::size_t rows : target_->steps()) EXPECT_LE(rows, 2 + 3 * budget);
    run_.reset();
    if (scripted_) scripted_->Release();
    while (shared.use_count() > 1) std::this_thread::sleep_for(1ms);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, OutcomeTest,
    testing::Combine(testing::ValuesIn(kMethods),
                     testing::Values(Kind::kRight, Kind::kWrong, Kind::kAlternating, Kind::kEndOnly,
                                     Kind::kNeverEnding, Kind::kLate, Kind::kEmpty, Kind::kThrows,
                                     Kind::kHangs),
                     testing::Bool()),
    [](const auto& test) {
      return std::get<0>(test.param) +
             kKindNames.at(static_cast<std::size_t>(std::get<1>(test.param))) +
             (std::get<2>(test.param) ? "OnTheEncoding" : "");
    });

// Stopping in every state.

class StopTest : public MethodTest, public testing::WithParamInterface<std::string> {
 protected:
  std::unique_ptr<as2d::Run> Begin(std::shared_ptr<ScriptedDrafter> drafter) {
    Use(GetParam());
    options_.patience = 1000s;
    Target({{0, Distinct(40)}, {1, Distinct(40)}});
    drafter_ = std::make_shared<Drafter>();
    drafter_->model = std::move(drafter);
    auto run = Start(drafter_, 8);
    run->Submit(MakeWindow(0));
    run->Submit(MakeWindow(1));
    return run;
  }

  std::shared_ptr<Drafter> drafter_;
};

TEST_P(StopTest, CancelledWhileTheDrafterIsInItsEncoder) {
  run_ = Begin(Draft({{0, Distinct(40)}}, {.encode_time = 1000s}));
  std::this_thread::sleep_for(10ms);
  run_->Cancel();
  const Result result = Collect(*run_);
  EXPECT_TRUE(result.cancelled);
  EXPECT_TRUE(result.lost.empty()) << "a drafter that was cancelled is not lost";
}

TEST_P(StopTest, CancelledWhileTheDrafterIsInAStep) {
  run_ = Begin(Draft({{0, Distinct(40)}}, {.token_time = 1000s}));
  std::this_thread::sleep_for(10ms);
  run_->Cancel();
  const Result result = Collect(*run_);
  EXPECT_TRUE(result.cancelled);
  EXPECT_TRUE(result.lost.empty());
}

TEST_P(StopTest, CancelledAtOnce) {
  for (int i = 0; i < 20; ++i) {
    run_ = Begin(Draft({{0, Distinct(40)}}));
    run_->Cancel();
    EXPECT_TRUE(Collect(*run_).cancelled);
  }
}

TEST_P(StopTest, DroppedWhileTheDrafterHangs) {
  options_.draft_grace = 50ms;
  const auto hanging = Draft({}, {.ending = Ending::kHang});
  auto run = Begin(hanging);
  std::this_thread::sleep_for(10ms);
  run.reset();
  hanging->Release();
  while (drafter_.use_count() > 1) std::this_thread::sleep_for(1ms);
}

INSTANTIATE_TEST_SUITE_P(All, StopTest,
                         testing::Values("as2d", "coupled", "pearl", "multi", "anchored"),
                         [](const auto& test) { return test.param; });

TEST_F(MethodTest, TheNextRunOnTheSameModelsIsAsNew) {
  // Also after one that was cancelled with a request on its way.
  for (const std::string method : {"coupled", "adaptive", "pearl", "anchored"}) {
    Use(method);
    Target({{0, Distinct(40)}});
    const auto shared = std::make_shared<Drafter>();
    shared->model = Draft({{0, Distinct(40)}}, {.token_time = 1ms});
    run_ = Start(shared, 8);
    run_->Submit(MakeWindow(0));
    while (counters().committed.Get() == 0) std::this_thread::sleep_for(100us);
    run_->Cancel();
    Collect(*run_);
    ExpectExactOf(Start(shared, 8));
    EXPECT_EQ(Accepted(), Proposed()) << method;
  }
}

// Anything.

class RandomRunTest : public testing::TestWithParam<std::string> {};

TEST_P(RandomRunTest, TextIsTheTargetsWhateverIsDrafted) {
  // Random texts that repeat themselves at times, drafts that are texts with random damage, random
  // speeds on both sides, limits and contexts that end anywhere.
  const std::string& method = GetParam();
  std::mt19937 random(static_cast<unsigned>(method.size() + static_cast<std::size_t>(method[0])));
  for (int round = 0; round < 25; ++round) {
    SCOPED_TRACE(round);
    Script texts;
    Script drafts;
    std::vector<int> limits;
    for (int window = 0; window < 5; ++window) {
      Tokens text = Text(random() % 60, static_cast<unsigned>(random()));
      if (text.size() > 10 && random() % 2 == 0) {
        text.insert(text.end(), text.begin(), text.begin() + 10);
      }
      Tokens draft;
      const unsigned damage = 2 + static_cast<unsigned>(random()) % 20;
      for (const TokenId token : text) {
        if (random() % damage == 0) continue;
        draft.push_back(random() % damage == 0 ? static_cast<TokenId>(random() % 1100) : token);
        if (random() % damage == 0) draft.push_back(static_cast<TokenId>(random() % 500));
      }
      texts[window] = text;
      drafts[window] = draft;
      limits.push_back(random() % 3 == 0 ? static_cast<int>(random() % 70) : 400);
    }
    ScriptedTarget::Options options;
    options.encode_time = std::chrono::microseconds(random() % 500);
    options.step_time = std::chrono::microseconds(random() % 50);
    options.slots = 1 + static_cast<int>(random() % 4);
    options.even_rows_only = random() % 2 == 0;
    if (random() % 3 == 0) options.context = 8 + static_cast<int>(random() % 60);
    const auto target = std::make_shared<ScriptedTarget>(texts, options);
    const auto drafter = std::make_shared<Drafter>();
    const bool needs_encoding = random() % 2 == 0;
    if (random() % 3 == 0) {
      drafter->model = std::make_shared<SteadyDrafter>(drafts, needs_encoding);
    } else {
      drafter->model = std::make_shared<ScriptedDrafter>(
          drafts,
          ScriptedDrafter::Options{
              .ending = std::array{Ending::kEnd, Ending::kThrow, Ending::kNever}[random() % 3],
              .token_time = std::chrono::microseconds(random() % 2 * (random() % 100)),
              .encode_time = std::chrono::microseconds(random() % 1000),
              .confidence = static_cast<float>(random() % 100) / 100,
              .needs_encoding = needs_encoding});
    }
    RunOptions run_options;
    run_options.coupled = IsCoupled(method);
    run_options.batch = 1 + random() % 4;
    run_options.batch_apart = random() % 10;
    run_options.encode_ahead = random() % 2 == 0;
    as2d::Run run(
        target, drafter,
        [&](Counters* counters) { return Make(method, 1 + random() % 16, counters); }, run_options);
    for (int window = 0; window < 5; ++window) {
      run.Submit(MakeWindow(window, limits[static_cast<std::size_t>(window)]));
    }
    run.Finish();
    Result result = Collect(run);
    EXPECT_EQ(result.error, "");
    // As many tokens as there is room for: the last one is never fed back, and a step that is
    // padded takes one place more.
    const int context =
        options.context - static_cast<int>(kPrompt.size()) + (options.even_rows_only ? 0 : 1);
    for (auto& [window, text] : texts) {
      const int limit = limits[static_cast<std::size_t>(window)];
      const auto room = static_cast<std::size_t>(std::min(limit, context));
      Tokens expected = text;
      FinishReason reason = FinishReason::kEnd;
      if (expected.size() >= room) {
        expected.resize(room);
        reason = limit <= context ? FinishReason::kLimit : FinishReason::kContext;
      }
      EXPECT_EQ(result.finished[window], expected);
      EXPECT_EQ(result.committed[window], expected);
      EXPECT_EQ(result.reasons[window], reason);
    }
    EXPECT_EQ(run.counters().windows.Get(), 5);
    EXPECT_LE(run.counters().accepted.Get(), run.counters().proposed.Get());
    EXPECT_GE(run.counters().stale_drafts.Get(), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(All, RandomRunTest, testing::ValuesIn(kMethods),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace as2d
