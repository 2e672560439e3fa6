// Runs that drop drafting and take it up again.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "as2d/decode/paying_budget.h"
#include "run_for_test.h"

namespace as2d {
namespace {

/// Steps of the target alone take so many seconds, and its encoder nothing.
StepCosts Costs(double step) { return {.alone = CostCurve(std::map<int, double>{{2, step}})}; }

/// Far less than any step takes, or far more: whatever the machine does, drafting pays never, or
/// always.
constexpr double kTooFast = 1e-9;
constexpr double kTooSlow = 100;

class AdaptiveRunTest : public RunTest {
 protected:
  AdaptiveRunTest() {
    options_.adaptive = true;
    options_.batch_apart = 2;
    for (int i = 0; i < kWindows; ++i) {
      Tokens text = Text(12, static_cast<unsigned>(i) + 1);
      draft_[i] = text;
      if (i % 2 == 0) draft_[i][5] = 700;
      texts_[i] = std::move(text);
    }
  }

  /// All windows at once, or each once the one before it is over. The text must be the target's.
  void Decode(const std::shared_ptr<Drafter>& drafter, bool one_by_one = false) {
    run_ = StartOn(target_, drafter, 4);
    std::int64_t submitted = 0;
    const auto submit = [&] {
      run_->Submit(MakeWindow(submitted++));
      if (submitted == kWindows) run_->Finish();
    };
    while (submitted < (one_by_one ? 1 : kWindows)) submit();
    std::map<std::int64_t, Tokens> finished;
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    for (bool over = false; !over;) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline);
      for (Event& event : run_->Poll(0.05s)) {
        over = event.kind == Event::Kind::kRunFinished;
        if (over) {
          EXPECT_EQ(event.message, "");
        }
        if (event.kind == Event::Kind::kLaneChanged && event.lane == LaneName::kTarget &&
            event.activity == Activity::kEncoding && shut_ && event.window >= beyond_drafter_) {
          passed_.insert(event.window);
        }
        if (event.kind == Event::Kind::kWindowFinished) {
          last_finished_ = std::max(last_finished_, event.window);
          finished[event.window] = event.tokens;
          if (one_by_one && submitted < kWindows) submit();
        }
        if (event.kind == Event::Kind::kDraftAdvanced) drafted_.insert(event.window);
        if (event.kind == Event::Kind::kDraftingChanged) {
          decisions_.push_back(event);
          shut_ = !event.finished;
          // Those that the drafter may have by now are drafted to the end.
          beyond_drafter_ = last_finished_ + 2 + options_.max_lead_windows;
        }
        if (event.kind == Event::Kind::kDrafterLost) decided_before_ = decisions_.size();
      }
    }
    EXPECT_EQ(finished, texts_);
  }

  std::shared_ptr<Drafter> MakeDrafter(ScriptedDrafter::Options options = {}) {
    auto drafter = std::make_shared<Drafter>();
    drafter->model = Draft(draft_, options);
    return drafter;
  }

  static constexpr std::int64_t kWindows = 24;
  Script texts_;
  Script draft_;
  std::set<std::int64_t> drafted_;
  std::vector<Event> decisions_;
  std::size_t decided_before_ = 0;  // when the drafter was lost
  bool shut_ = false;
  std::int64_t last_finished_ = -1;
  std::int64_t beyond_drafter_ = 0;
  std::set<std::int64_t> passed_;  // taken by the target while the drafter got none
};

TEST_F(AdaptiveRunTest, WhatPaysGoesOn) {
  Target(texts_, {.step_time = 200us});
  options_.costs = Costs(kTooSlow);
  Decode(MakeDrafter());
  EXPECT_TRUE(decisions_.empty());
}

TEST_F(AdaptiveRunTest, WhatDoesNotPayIsDropped) {
  Target(texts_, {.step_time = 200us});
  options_.costs = Costs(kTooFast);
  Decode(MakeDrafter());
  ASSERT_FALSE(decisions_.empty());
  EXPECT_FALSE(decisions_[0].finished);
  EXPECT_NE(decisions_[0].message.find("does not pay"), std::string::npos);
  EXPECT_GE(decisions_[0].window, 2) << "the first window decides nothing, and one is not enough";
}

TEST_F(AdaptiveRunTest, WhatTheTargetTakesMeanwhileIsNeverDrafted) {
  for (const std::size_t batch : {1U, 3U}) {
    Target(texts_, {.slots = 3, .step_time = 200us});
    options_.costs = Costs(kTooFast);
    options_.batch = batch;
    passed_.clear();
    drafted_.clear();
    last_finished_ = -1;
    shut_ = false;
    Decode(MakeDrafter());
    EXPECT_FALSE(passed_.empty());
    for (const std::int64_t window : passed_) {
      EXPECT_FALSE(drafted_.contains(window)) << window << " with " << batch;
    }
  }
}

/// The target alone, but it writes down how many windows are beside its own.
class Listening final : public Strategy {
 public:
  explicit Listening(std::multiset<std::size_t>* heard) : heard_(heard) {}
  void BeginWindow(const DraftSource&) override {}
  void Committed(std::span<const TokenId>) override {}
  void Beside(std::span<const std::size_t> others) override { heard_->insert(others.size()); }
  void Propose(std::size_t, CandidateRuns*) override {}
  void Verified(const CandidateRuns&, std::size_t, std::size_t) override {}
  void EndWindow() override {}

 private:
  std::multiset<std::size_t>* const heard_;
};

TEST_F(AdaptiveRunTest, EachWindowOfABatchHearsOfTheOthers) {
  std::multiset<std::size_t> heard;
  strategy_ = [&](std::size_t, Counters*) { return std::make_unique<Listening>(&heard); };
  Target(texts_, {.slots = 3});
  Decode(nullptr);
  EXPECT_TRUE(heard.empty()) << "there is no batch";
  options_.batch = 3;
  Decode(nullptr);
  EXPECT_GT(heard.count(2), 0U);
  EXPECT_EQ(heard.upper_bound(2), heard.end());
}

TEST_F(AdaptiveRunTest, WithoutCostsItComparesAfterFiveWindows) {
  Target(texts_, {.step_time = 200us});
  Decode(MakeDrafter());
  ASSERT_FALSE(decisions_.empty());
  EXPECT_EQ(decisions_[0].window, 4);
  EXPECT_FALSE(decisions_[0].finished);
}

TEST_F(AdaptiveRunTest, TheTextIsTheTargetsWithEveryKindOfDrafterAndBatch) {
  for (const bool needs_encoding : {false, true}) {
    for (const std::size_t batch : {1U, 3U}) {
      for (const double step : {0.0, kTooFast, kTooSlow}) {
        SCOPED_TRACE(testing::Message() << needs_encoding << ' ' << batch << ' ' << step);
        Target(texts_, {.slots = 4, .step_time = 100us});
        options_.batch = batch;
        options_.encode_ahead = needs_encoding;
        options_.max_lead_windows = static_cast<std::int64_t>(batch) + 1;
        options_.costs.reset();
        if (step > 0) options_.costs = Costs(step);
        const auto acceptance = std::make_shared<Acceptance>();
        strategy_ = [&](std::size_t most, Counters* counters) {
          auto budget = std::make_unique<PayingBudget>(
              most, CostCurve(std::map<int, double>{{2, 1}, {6, 1.5}}), true, acceptance);
          return std::make_unique<DecoupledDrafting>(std::make_shared<const TokenKeys>(),
                                                     std::move(budget), counters);
        };
        decisions_.clear();
        Decode(MakeDrafter({.token_time = 50us, .needs_encoding = needs_encoding}));
        EXPECT_EQ(decisions_.empty(), step == kTooSlow);
      }
    }
  }
}

TEST_F(AdaptiveRunTest, WaitingForWindowsIsNotTheLanesTime) {
  Target(texts_);
  options_.costs =
      StepCosts{.alone = CostCurve(std::map<int, double>{{2, 1e-6}}), .encode_base = 0.5};
  const auto drafter = MakeDrafter();
  run_ = StartOn(target_, drafter, 4);
  for (std::int64_t i = 0; i < 5; ++i) {
    run_->Submit(MakeWindow(i));
    std::this_thread::sleep_for(600ms);
  }
  run_->Finish();
  for (bool over = false; !over;) {
    for (const Event& event : run_->Poll(20s)) {
      EXPECT_NE(event.kind, Event::Kind::kDraftingChanged) << event.message;
      over = event.kind == Event::Kind::kRunFinished;
    }
  }
}

TEST_F(AdaptiveRunTest, WindowsThatComeLate) {
  Target(texts_, {.step_time = 200us});
  options_.costs = Costs(kTooFast);
  Decode(MakeDrafter(), true);
  EXPECT_FALSE(decisions_.empty());
}

TEST_F(AdaptiveRunTest, NothingIsDecidedOfADrafterThatIsLost) {
  Target(texts_, {.step_time = 200us});
  options_.costs = Costs(kTooFast);
  draft_.clear();
  Decode(MakeDrafter({.ending = ScriptedDrafter::Ending::kThrow}));
  EXPECT_EQ(decisions_.size(), decided_before_);
}

TEST_F(AdaptiveRunTest, NothingIsDecidedWhereItIsNotToBe) {
  options_.costs = Costs(kTooFast);
  for (const bool adaptive : {false, true}) {
    Target(texts_, {.step_time = 200us});
    options_.adaptive = adaptive;
    options_.tell_encodings = adaptive;
    Decode(MakeDrafter());
    Decode(nullptr);
    EXPECT_TRUE(decisions_.empty());
  }
}

TEST_F(AdaptiveRunTest, CancelEndsARunWhoseDrafterWaitsToBeLetIn) {
  Target(texts_, {.step_time = 1ms});
  options_.costs = Costs(kTooFast);
  run_ = StartOn(target_, MakeDrafter(), 4);
  for (std::int64_t i = 0; i < kWindows; ++i) run_->Submit(MakeWindow(i));
  const auto dropped = [&] {
    const std::vector<Event> events = run_->Poll(0.01s);
    return std::ranges::any_of(
        events, [](const Event& e) { return e.kind == Event::Kind::kDraftingChanged; });
  };
  ASSERT_TRUE(WaitUntil(dropped));
  run_->Cancel();
  EXPECT_TRUE(Collect(*run_).cancelled);
}

}  // namespace
}  // namespace as2d
