// Both lanes over scripted models with known outcomes: whatever the drafter does, the text is the
// target's own.
#include "as2d/decode/run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "as2d/error.h"
#include "run_for_test.h"

namespace as2d {
namespace {

TEST_F(RunTest, TargetAloneSaysItsText) {
  Target({{0, Text(30)}});
  EXPECT_EQ(ExpectExact(nullptr).drafts.at(0), Tokens());
  EXPECT_EQ(counters().steps[0].Get(), 30) << "the prompt gives the first token, the end is a step";
  EXPECT_EQ(counters().committed.Get(), 30);
  EXPECT_EQ(counters().windows.Get(), 1);
  for (const std::size_t rows : target_->steps()) EXPECT_EQ(rows, 2U);
}

TEST_F(RunTest, OneRowIsEnoughWhenNotExact) {
  ScriptedTarget::Options options;
  options.even_rows_only = false;
  Target({{0, Text(30)}}, options);
  ExpectExact(nullptr);
  for (const std::size_t rows : target_->steps()) EXPECT_EQ(rows, 1U);
}

TEST_F(RunTest, DrafterThatIsAlwaysRight) {
  ahead_ = 74;
  Target({{0, Text(73)}}, Slow());
  ExpectExact(Draft({{0, Text(73)}}), 8);
  // One token from the prompt, then 9 a step: 73 = 1 + 8 * 9. The end comes with a step of its own.
  EXPECT_EQ(Steps(), 9);
  EXPECT_EQ(counters().steps[0].Get(), 0);
  EXPECT_EQ(counters().accepted.Get(), counters().proposed.Get());
  EXPECT_EQ(counters().realignments.Get(), 0);
  EXPECT_EQ(counters().drafted.Get(), 74) << "the end token is drafted, too";
  EXPECT_GT(counters().lead_total.Get(), 0);
  // The bonus token of each step is one that was drafted and need not be proposed.
  EXPECT_EQ(counters().stale_drafts.Get(), 74 - counters().proposed.Get());
}

TEST_F(RunTest, DrafterThatIsAlwaysWrong) {
  ahead_ = 61;
  Target({{0, Text(40)}}, Slow());
  ExpectExact(Draft({{0, Tokens(60, 777)}}));
  EXPECT_EQ(counters().accepted.Get(), 0);
  EXPECT_GT(counters().proposed.Get(), 0);
  EXPECT_EQ(Steps(), 40);
}

TEST_F(RunTest, WhatTheDrafterSaidIsToldWithoutTheEnd) {
  ahead_ = 62;
  const Tokens draft(60, 777);
  Target({{0, Text(40)}, {1, Text(4, 2)}}, Slow());
  const Result result = ExpectExact(Draft({{0, draft}, {1, {}}}));
  EXPECT_EQ(result.drafts.at(0), draft);
  EXPECT_EQ(result.drafts.at(1), Tokens());
}

TEST_F(RunTest, DrafterThatIsRightEveryOtherTime) {
  ahead_ = 81;
  const Tokens text = Text(80);
  Tokens draft = text;
  for (std::size_t i = 0; i < draft.size(); i += 2) draft[i] = 777;
  Target({{0, text}}, Slow());
  ExpectExact(Draft({{0, draft}}));
  EXPECT_GT(counters().accepted.Get(), 0);
  EXPECT_LT(Steps(), 60) << "it is found again after each difference";
}

TEST_F(RunTest, DrafterThatIsRightSevenTimesThenWrong) {
  ahead_ = 161;
  const Tokens text = Text(160);
  Tokens draft = text;
  for (std::size_t i = 7; i < draft.size(); i += 8) draft[i] = 777;
  Target({{0, text}}, Slow());
  ExpectExact(Draft({{0, draft}}));
  // A step takes seven and the target's own in place of the wrong one.
  EXPECT_LE(Steps(), 160 / 8 + 2);
}

TEST_F(RunTest, DrafterThatLeavesWordsOutAndAddsSome) {
  ahead_ = 121;
  const Tokens text = Text(120);
  Tokens draft;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i % 10 == 4) continue;
    draft.push_back(text[i]);
    if (i % 10 == 8) draft.push_back(777);
  }
  Target({{0, text}}, Slow());
  ExpectExact(Draft({{0, draft}}));
  EXPECT_GT(counters().realignments.Get(), 0);
  EXPECT_LT(Steps(), 60);
}

TEST_F(RunTest, DrafterThatSaysNothing) {
  ahead_ = 1;
  Target({{0, Text(20)}}, Slow());
  ExpectExact(Draft({}));
  EXPECT_EQ(counters().drafted.Get(), 1) << "its end token";
}

TEST_F(RunTest, DrafterThatEndsEarly) {
  ahead_ = 11;
  const Tokens text = Text(50);
  Target({{0, text}}, Slow());
  ExpectExact(Draft({{0, Tokens(text.begin(), text.begin() + 10)}}));
  EXPECT_GE(counters().accepted.Get(), 8);
}

TEST_F(RunTest, DrafterThatNeverEnds) {
  Target({{0, Text(50)}, {1, Text(30, 2)}}, Slow());
  ExpectExact(Draft({{0, Text(50)}, {1, {}}}, {.ending = ScriptedDrafter::Ending::kNever}));
  EXPECT_LE(counters().drafted.Get(), 2 * static_cast<std::int64_t>(options_.stream_capacity));
}

TEST_F(RunTest, DrafterThatIsLate) {
  ScriptedTarget::Options options;
  options.step_time = 300us;
  Target({{0, Text(100)}}, options);
  // It begins when the target is well ahead, is faster, and catches up.
  ExpectExact(Draft({{0, Text(100)}}, {.token_time = 10us, .encode_time = 8ms}));
  EXPECT_GT(counters().steps[0].Get(), 0) << "the target did not wait";
  EXPECT_GT(counters().accepted.Get(), 0) << "what came later was of use";
}

TEST_F(RunTest, DrafterThatIsTooSlowToBeOfUse) {
  Target({{0, Text(30)}, {1, Text(30, 2)}});
  ExpectExact(Draft({{0, Text(30)}, {1, Text(30, 2)}}, {.token_time = 5ms, .encode_time = 50ms}));
}

TEST_F(RunTest, IdsOutsideTheVocabularyAreNeverVerified) {
  ahead_ = 41;
  const Tokens text = Text(40);
  Tokens draft = text;
  draft[5] = 1000;
  draft[11] = -1;
  draft[17] = 1 << 30;
  Target({{0, text}}, Slow());
  ExpectExact(Draft({{0, draft}}));
  EXPECT_GT(counters().accepted.Get(), 20);
}

TEST_F(RunTest, WhatIsNotVerifiedIsNotCounted) {
  const Tokens text = Text(2);
  Target({{0, text}}, Slow());
  ExpectExact(Draft({{0, {text[0], 1000, 1000}}}));
  EXPECT_EQ(counters().proposed.Get(), 0);
  EXPECT_EQ(counters().lead_total.Get(), 0);
  EXPECT_EQ(counters().realignments.Get(), 0);
  EXPECT_EQ(counters().stale_drafts.Get(), counters().drafted.Get());
}

TEST_F(RunTest, AnEndTokenInTheDraftIsAProposalLikeAnyOther) {
  const Tokens text = Text(40);
  Tokens draft = text;
  draft.insert(draft.begin() + 10, kEnd);
  Target({{0, text}}, Slow());
  ExpectExact(Draft({{0, draft}}));
}

TEST_F(RunTest, EveryBudgetGivesTheSameText) {
  const Tokens text = Text(90);
  Tokens draft = text;
  for (std::size_t i = 0; i < draft.size(); i += 6) draft[i] = 700;
  for (const std::size_t budget : {0U, 1U, 2U, 3U, 4U, 7U, 8U, 16U, 31U, 64U, 200U}) {
    Target({{0, text}}, Slow());
    ExpectExact(Draft({{0, draft}}), budget);
    for (const std::size_t rows : target_->steps()) EXPECT_LE(rows, 1 + budget + 1);
  }
}

TEST_F(RunTest, LimitsAreExact) {
  const Tokens text = Text(50);
  constexpr std::size_t kBudget = 8;
  for (const int limit : {0, 1, 2, 7, 8, 9, 10, 17, 49, 50, 51}) {
    for (const bool draft : {false, true}) {
      Target({{0, text}}, Slow());
      run_ = Start(draft ? Draft({{0, text}}) : nullptr, kBudget);
      run_->Submit(MakeWindow(0, limit));
      run_->Finish();
      Result result = Collect(*run_);
      const auto kept = std::min<std::ptrdiff_t>(limit, 50);
      EXPECT_EQ(result.finished[0], Tokens(text.begin(), text.begin() + kept)) << limit;
      EXPECT_EQ(result.reasons[0], limit > 50 ? FinishReason::kEnd : FinishReason::kLimit) << limit;
    }
  }
}

TEST_F(RunTest, StopsWhereTheContextEnds) {
  // The same with and without drafts, for every room that is left.
  for (int context = 6; context < 30; ++context) {
    ScriptedTarget::Options options = Slow();
    options.context = context;
    Tokens alone;
    for (const bool draft : {false, true}) {
      Target({{0, Text(100)}}, options);
      run_ = Start(draft ? Draft({{0, Text(100)}}) : nullptr, 8);
      run_->Submit(MakeWindow(0));
      run_->Finish();
      Result result = Collect(*run_);
      EXPECT_EQ(result.error, "");
      EXPECT_EQ(result.reasons[0], FinishReason::kContext);
      if (draft) {
        EXPECT_EQ(result.finished[0], alone) << context;
      } else {
        alone = result.finished[0];
        EXPECT_GE(static_cast<int>(alone.size()), context - 4 - 1);
      }
    }
  }
}

TEST_F(RunTest, RefusesRequestsThatCannotBeServed) {
  Target({{0, Text(5)}});
  run_ = Start(nullptr);
  EXPECT_THROW(run_->Submit(MakeWindow(0, 10, {})), Error);
  EXPECT_THROW(run_->Submit(MakeWindow(0, 10, Tokens(447, 1))), Error);
  EXPECT_THROW(run_->Submit(MakeWindow(0, 10, {1, 1000})), Error);
  EXPECT_THROW(run_->Submit(MakeWindow(0, -1)), Error);
  run_->Finish();
  EXPECT_THROW(run_->Submit(MakeWindow(0)), Error);
  EXPECT_EQ(Collect(*run_).error, "");
}

TEST_F(RunTest, WindowsDoNotLeakIntoEachOther) {
  const Script both = {{0, Text(40)}, {1, Text(35, 2)}};
  const Script drafts = {{0, Text(35, 2)}, {1, Text(40)}};  // each the other's text
  for (const Tokens& order : std::vector<Tokens>{{0}, {1}, {0, 1}, {1, 0}, {0, 0, 1}}) {
    Target(both, Slow());
    const auto shared = std::make_shared<Drafter>();
    shared->model = Draft(drafts);
    run_ = Start(shared, 8);
    // The position in the run is the index; which text it is, the first sample says.
    for (std::size_t i = 0; i < order.size(); ++i) {
      Window window = MakeWindow(static_cast<std::int64_t>(i));
      window.samples = {static_cast<float>(order[i])};
      run_->Submit(window);
    }
    run_->Finish();
    Result result = Collect(*run_);
    for (std::size_t i = 0; i < order.size(); ++i) {
      EXPECT_EQ(result.finished[static_cast<std::int64_t>(i)], both.at(order[i]));
    }
  }
}

TEST_F(RunTest, DrafterGoesOnThroughTheWindowsUpToItsLead) {
  Script script;
  for (int i = 0; i < 6; ++i) script[i] = Text(20, static_cast<unsigned>(i) + 1);
  Target(script);
  std::atomic<bool> open{false};
  gate_ = [&] { return open.load(); };
  options_.max_lead_windows = 2;
  run_ = Start(Draft(script));
  for (int i = 0; i < 6; ++i) run_->Submit(MakeWindow(i));
  run_->Finish();
  while (counters().drafted.Get() < 3 * 21) std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(30ms);
  EXPECT_EQ(counters().windows.Get(), 0) << "the target is still in the first encoder";
  EXPECT_EQ(counters().drafted.Get(), 3 * 21) << "its own window and two more, no further";
  open = true;
  EXPECT_EQ(Collect(*run_).finished, script);
}

TEST_F(RunTest, DrafterThatThrowsIsLostWithOneWarning) {
  ahead_ = 10;
  const Script script = {{0, Text(40)}, {1, Text(30, 2)}, {2, Text(30, 3)}};
  Target(script, Slow());
  const auto shared = std::make_shared<Drafter>();
  shared->model = Draft({{0, Text(10)}}, {.ending = ScriptedDrafter::Ending::kThrow});
  run_ = Start(shared, 8);
  for (const auto& [index, text] : script) run_->Submit(MakeWindow(index));
  run_->Finish();
  const Result result = Collect(*run_);
  EXPECT_EQ(result.finished, script);
  EXPECT_EQ(result.error, "");
  ASSERT_EQ(result.lost.size(), 1U);
  EXPECT_NE(result.lost.front().find("the script says so"), std::string::npos);
  EXPECT_TRUE(shared->lost);
}

TEST_F(RunTest, DrafterThatThrowsWithoutAWordIsLostAllTheSame) {
  class Silent final : public DraftModel {
   public:
    void Begin(const Window&, std::span<const float>) override {}
    bool Next(std::vector<TokenId>*) override { throw std::runtime_error(""); }
    void Follow(std::span<const TokenId>) override {}
    bool encoding() const override { return false; }
    float confidence() const override { return 1; }
    void Cancel() override {}
    void ClearCancel() override {}
  };
  Target({{0, Text(10)}}, Slow());
  const auto shared = std::make_shared<Drafter>();
  shared->model = std::make_shared<Silent>();
  run_ = Start(shared, 8);
  run_->Submit(MakeWindow(0));
  run_->Finish();
  const Result result = Collect(*run_);
  EXPECT_EQ(result.finished, script_);
  ASSERT_EQ(result.lost.size(), 1U);
  EXPECT_NE(result.lost.front(), "");
  EXPECT_TRUE(shared->lost);
}

TEST_F(RunTest, DrafterThatHangsHoldsNobodyUp) {
  ahead_ = 10;
  const Script script = {{0, Text(40)}, {1, Text(30, 2)}};
  Target(script, Slow());
  const auto hanging = Draft({{0, Text(10)}}, {.ending = ScriptedDrafter::Ending::kHang});
  const auto shared = std::make_shared<Drafter>();
  shared->model = hanging;
  options_.draft_grace = 1s;
  run_ = Start(shared, 8);
  for (const auto& [index, text] : script) run_->Submit(MakeWindow(index));
  run_->Finish();
  const Result result = Collect(*run_);
  EXPECT_EQ(result.finished, script);
  ASSERT_EQ(result.lost.size(), 1U);
  EXPECT_TRUE(shared->lost);
  const auto start = std::chrono::steady_clock::now();
  run_.reset();  // leaves the lane behind
  EXPECT_LT(std::chrono::steady_clock::now() - start, options_.draft_grace) << "waited once only";
  // The lane that was left behind still has all that it uses, and ends once it can.
  hanging->Release();
  while (shared.use_count() > 1) std::this_thread::sleep_for(1ms);
}

TEST_F(RunTest, CancelEndsBothLanesSoon) {
  ScriptedTarget::Options slow;
  slow.encode_time = 10s;
  Target({{0, Text(40)}, {1, Text(40)}}, slow);
  run_ = Start(Draft({{0, Text(40)}}, {.token_time = 10s}));
  run_->Submit(MakeWindow(0));
  run_->Submit(MakeWindow(1));
  std::this_thread::sleep_for(20ms);
  const auto start = std::chrono::steady_clock::now();
  run_->Cancel();
  const Result result = Collect(*run_);
  EXPECT_TRUE(result.cancelled);
  EXPECT_EQ(result.error, "");
  EXPECT_TRUE(result.lost.empty()) << "a drafter that was cancelled is not lost";
  EXPECT_EQ(result.reasons.at(0), FinishReason::kCancelled);
  EXPECT_FALSE(result.reasons.contains(1));
  EXPECT_EQ(counters().windows.Get(), 0) << "one that is given up is not finished";
  run_.reset();
  // Far below the ten seconds, far above what a busy machine needs.
  EXPECT_LT(std::chrono::steady_clock::now() - start, 2s);
}

TEST_F(RunTest, WindowsThatComeAfterACancelAreDropped) {
  Target({{0, Text(40)}});
  run_ = Start(nullptr);
  run_->Cancel();
  EXPECT_NO_THROW(run_->Submit(MakeWindow(0)));
  const Result result = Collect(*run_);
  EXPECT_TRUE(result.cancelled);
  EXPECT_TRUE(result.finished.empty());
}

TEST_F(RunTest, CancelKeepsWhatWasCommitted) {
  ScriptedTarget::Options slow;
  slow.step_time = 5ms;
  const Tokens text = Text(300);
  Target({{0, text}}, slow);
  run_ = Start(nullptr);
  run_->Submit(MakeWindow(0));
  while (counters().committed.Get() < 5) std::this_thread::sleep_for(1ms);
  run_->Cancel();
  Result result = Collect(*run_);
  const Tokens& kept = result.finished[0];
  ASSERT_GE(kept.size(), 5U);
  ASSERT_LT(kept.size(), text.size());
  EXPECT_TRUE(std::equal(kept.begin(), kept.end(), text.begin()));
  EXPECT_EQ(result.committed[0], kept);
}

TEST_F(RunTest, AModelCanBeUsedAgainAfterACancel) {
  ScriptedTarget::Options slow;
  slow.encode_time = 30ms;
  Target({{0, Text(40)}}, slow);
  const auto shared = std::make_shared<Drafter>();
  shared->model = Draft({{0, Text(40)}});
  run_ = Start(shared, 8);
  run_->Submit(MakeWindow(0));
  run_->Cancel();
  Collect(*run_);
  run_.reset();
  run_ = Start(shared, 8);
  run_->Submit(MakeWindow(0));
  run_->Finish();
  EXPECT_EQ(Collect(*run_).finished, script_);
}

TEST_F(RunTest, ARunThatIsOverLeavesItsModelsAlone) {
  // As where a variable takes the next run before it lets go of the last one.
  Target({{0, Text(40)}}, Slow());
  const auto shared = std::make_shared<Drafter>();
  shared->model = Draft({{0, Text(40)}}, {.token_time = 200us});
  auto lease = std::make_shared<int>();
  options_.lease = lease;
  auto first = Start(shared, 8);
  options_.lease = nullptr;
  first->Submit(MakeWindow(0));
  EXPECT_GT(lease.use_count(), 1);
  first->Finish();
  EXPECT_EQ(Collect(*first).finished, script_);
  EXPECT_EQ(lease.use_count(), 1);
  run_ = Start(shared, 8);
  first->Cancel();
  first.reset();
  run_->Submit(MakeWindow(0));
  run_->Finish();
  const Result result = Collect(*run_);
  EXPECT_EQ(result.finished, script_);
  EXPECT_EQ(result.reasons.at(0), FinishReason::kEnd);
  EXPECT_FALSE(result.cancelled);
}

TEST_F(RunTest, ATargetCancelledFromOutsideDoesNotLookComplete) {
  ScriptedTarget::Options slow;
  slow.encode_time = 10s;
  Target({{0, Text(40)}, {1, Text(40)}}, slow);
  run_ = Start(nullptr);
  run_->Submit(MakeWindow(0));
  run_->Submit(MakeWindow(1));
  run_->Finish();
  target_->Cancel();
  const Result result = Collect(*run_);
  EXPECT_TRUE(result.cancelled);
  EXPECT_FALSE(result.finished.contains(1));
}

TEST_F(RunTest, BothLanesSayWhenTheyAreIdleAndDone) {
  Target({{0, Text(10)}}, Slow());
  run_ = Start(Draft({{0, Text(10)}}));
  run_->Submit(MakeWindow(0));
  std::map<LaneName, std::vector<Activity>> told;
  bool finished = false;
  while (!finished) {
    for (const Event& event : run_->Poll(1s)) {
      if (event.kind == Event::Kind::kLaneChanged) told[event.lane].push_back(event.activity);
      if (event.kind == Event::Kind::kWindowFinished) run_->Finish();
      finished = finished || event.kind == Event::Kind::kRunFinished;
    }
  }
  for (const LaneName lane : {LaneName::kTarget, LaneName::kDraft}) {
    ASSERT_GE(told[lane].size(), 2U);
    EXPECT_EQ(told[lane][told[lane].size() - 2], Activity::kIdle);
    EXPECT_EQ(told[lane].back(), Activity::kDone);
  }
}

TEST(EventQueueTest, WaitsForEverWhenAsked) {
  EventQueue queue;
  std::thread late([&] {
    std::this_thread::sleep_for(20ms);
    queue.Push({});
  });
  EXPECT_EQ(queue.Take(std::chrono::duration<double>(HUGE_VAL)).size(), 1U);
  late.join();
}

TEST_F(RunTest, DestructionEndsARunThatNobodyFinished) {
  Target({{0, Text(40)}}, Slow());
  run_ = Start(Draft({{0, Text(40)}}));
  run_->Submit(MakeWindow(0));
  run_.reset();
  run_ = Start(nullptr);
  run_.reset();
}

class BrokenTarget final : public TargetModel {
 public:
  void Encode(std::span<const float>, int) override { throw Error("encoder.onnx: broken"); }
  ChoiceRules Rules(const Window&) const override { return {}; }
  FirstToken Prompt(std::span<const TokenId>, const Choice&, int) override { return {}; }
  void Forward(std::span<const Row>, std::span<TokenId>, std::span<float>) override {}
  void Move(int, int, int, int) override {}
  std::span<const float> encoding() const override { return {}; }
  std::size_t encoding_width() const override { return 1; }
  int slots() const override { return 1; }
  int context() const override { return 448; }
  TokenId end_token() const override { return kEnd; }
  int vocabulary_size() const override { return 1000; }
  bool even_rows_only() const override { return true; }
  void Cancel() override {}
  void ClearCancel() override {}
};

TEST_F(RunTest, ATargetThatFailsIsReportedAndEndsTheRun) {
  auto strategy = [](Counters*) { return std::make_unique<TargetOnly>(); };
  const auto shared = std::make_shared<Drafter>();
  shared->model = Draft({}, {.ending = ScriptedDrafter::Ending::kNever});
  run_ = std::make_unique<as2d::Run>(std::make_shared<BrokenTarget>(), shared, strategy, options_);
  run_->Submit(MakeWindow(0));
  const Result result = Collect(*run_);
  EXPECT_EQ(result.error, "encoder.onnx: broken");
  EXPECT_FALSE(result.cancelled);
}

TEST_F(RunTest, LaneHooksLiveAsLongAsTheLanes) {
  struct Inside {
    std::atomic<int>* count;
    explicit Inside(std::atomic<int>* c) : count(c) { ++*count; }
    ~Inside() { --*count; }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
  };
  std::atomic<int> inside{0};
  options_.enter_target_lane = [&] { return std::make_shared<Inside>(&inside); };
  options_.enter_draft_lane = options_.enter_target_lane;
  Target({{0, Text(10)}}, Slow());
  run_ = Start(Draft({{0, Text(10)}}));
  run_->Submit(MakeWindow(0));
  while (counters().committed.Get() == 0) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(inside, 2);
  run_->Finish();
  Collect(*run_);
  run_.reset();
  EXPECT_EQ(inside, 0);
}

}  // namespace
}  // namespace as2d
