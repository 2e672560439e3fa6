#include "as2d/profile/timing.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "as2d/engine.h"
#include "as2d/error.h"
#include "run_for_test.h"

namespace as2d {
namespace {

Deadline Soon() { return std::chrono::steady_clock::now() + 60s; }

TEST(TimingTest, EncoderPassesTakeTheirTime) {
  ScriptedTarget target({}, {.encode_time = 3ms});
  const std::vector<double> times = TimeEncode(target, 2, 4, Soon());
  ASSERT_EQ(times.size(), 4U);
  for (const double time : times) EXPECT_GE(time, 0.003);
  EXPECT_EQ(target.encoding().size(), 32000U);
}

TEST(TimingTest, ThereIsASampleWhateverTheTime) {
  ScriptedTarget target({}, {});
  const Deadline past = std::chrono::steady_clock::now();
  EXPECT_EQ(TimeEncode(target, 1, 5, past).size(), 1U);
  StepTimer steps(target, Noise(1), true);
  const std::vector<int> rows = {1, 8};
  const auto times = steps.Time(rows, 5, past);
  ASSERT_EQ(times.size(), 2U);
  EXPECT_EQ(times[0].size(), 1U);
  EXPECT_EQ(times[1].size(), 1U);
}

TEST(TimingTest, StepsTakeTurnsAndArePaddedAsInARun) {
  ScriptedTarget target({}, {.step_time = 2ms});
  StepTimer steps(target, Noise(1), true);
  const std::vector<int> rows = {1, 2, 9};
  const auto times = steps.Time(rows, 3, Soon());
  ASSERT_EQ(times.size(), 3U);
  for (const auto& of_rows : times) {
    ASSERT_EQ(of_rows.size(), 3U);
    for (const double time : of_rows) EXPECT_GE(time, 0.002);
  }
  const std::vector<std::size_t> wanted = {2, 2, 10, 2, 2, 10, 2, 2, 10, 2, 2, 10};
  EXPECT_EQ(target.steps(), wanted);
}

TEST(TimingTest, OutsideExactModeRowsAreWhatTheyAre) {
  ScriptedTarget target({}, {.even_rows_only = false});
  StepTimer steps(target, Noise(1), false);
  steps.Time(std::vector<int>{1, 9}, 1, Soon());
  EXPECT_EQ(target.steps(), (std::vector<std::size_t>{1, 9, 1, 9}));
}

TEST(TimingTest, StepsThatDoNotFitAreRefused) {
  ScriptedTarget target({}, {.context = 64});
  StepTimer steps(target, Noise(1), true);
  EXPECT_EQ(steps.Time(std::vector<int>{31}, 1, Soon()).size(), 1U);
  for (const int rows : {-1, 0, 32, 1000}) {
    EXPECT_THROW(steps.Time(std::vector<int>{rows}, 1, Soon()), Error) << rows;
  }
}

TEST(TimingTest, ADraftIsTimedByItsParts) {
  ScriptedDrafter drafter({{3, {5, 6, 7}}}, {.token_time = 2ms, .encode_time = 5ms});
  const DraftTiming timing = TimeDraft(drafter, MakeWindow(3), {}, nullptr, [] { return false; });
  EXPECT_GE(timing.encode, 0.005);
  EXPECT_GE(timing.steps, 0.008);  // the end is a step, too
  EXPECT_EQ(timing.tokens.size(), 3U);
  EXPECT_TRUE(timing.complete);
}

TEST(TimingTest, ADraftWithoutEndIsStopped) {
  ScriptedDrafter drafter({}, {.ending = ScriptedDrafter::Ending::kNever});
  const DraftTiming timing = TimeDraft(drafter, MakeWindow(0), {}, nullptr, [] { return true; });
  EXPECT_EQ(timing.tokens.size(), 1U);
  EXPECT_FALSE(timing.complete);
}

// The engine's own.

class EngineTimingTest : public testing::Test {
 protected:
  void Draft(ScriptedDrafter::Options options) {
    engine_.SetDrafter(std::make_shared<ScriptedDrafter>(Script{{0, {1, 2, 3}}}, options));
  }

  Engine engine_{{{0, {1, 2, 3}}}, {.step_time = 1ms}};
  const std::vector<int> rows_ = {2, 4};
};

TEST_F(EngineTimingTest, NeedsADrafterForADraft) {
  EXPECT_THROW(engine_.TimeDraft(MakeWindow(0), {}), Error);
  EXPECT_THROW(engine_.TimeTogether(rows_, 0.01, MakeWindow(0), true), Error);
  Draft({});
  EXPECT_EQ(engine_.TimeDraft(MakeWindow(0), {}).tokens.size(), 3U);
}

TEST_F(EngineTimingTest, BothLanesAreTimedTogether) {
  Draft({.token_time = 1ms, .needs_encoding = true});
  const TogetherTiming timing = engine_.TimeTogether(rows_, 0.05, MakeWindow(0), true);
  ASSERT_EQ(timing.steps.size(), 2U);
  for (const auto& steps : timing.steps) {
    ASSERT_FALSE(steps.empty());
    EXPECT_GE(steps.front(), 0.001);
  }
  ASSERT_FALSE(timing.drafts.empty());
  EXPECT_GT(timing.drafts.front().steps, 0);
}

TEST_F(EngineTimingTest, ADrafterThatFailsIsTold) {
  Draft({.ending = ScriptedDrafter::Ending::kThrow});
  EXPECT_THROW(engine_.TimeDraft(MakeWindow(0), {}), Error);
  EXPECT_THROW(engine_.TimeTogether(rows_, 0.05, MakeWindow(0), true), Error);
}

TEST_F(EngineTimingTest, IsRefusedWhileARunGoesOn) {
  const auto run = engine_.Start(Method::kTarget, 0, {});
  EXPECT_THROW(engine_.TimeEncode(1, 1, {}), Error);
}

TEST_F(EngineTimingTest, CancelEndsAMeasurementAndThoseAfterIt) {
  Draft({.ending = ScriptedDrafter::Ending::kNever, .token_time = 1ms});
  std::thread other([this] {
    std::this_thread::sleep_for(30ms);
    engine_.CancelTiming();
  });
  EXPECT_THROW(engine_.TimeTogether(rows_, 1e9, MakeWindow(0), true), Cancelled);
  other.join();
  EXPECT_THROW(engine_.TimeEncode(1, 1, {}), Cancelled);
  EXPECT_THROW(engine_.TimeSteps(rows_, 1, {}), Cancelled);
  EXPECT_THROW(engine_.TimeDraft(MakeWindow(0), {}), Cancelled);
  auto run = engine_.Start(Method::kAs2d, 4, {});
  run->Submit(MakeWindow(0));
  run->Finish();
  EXPECT_EQ(Collect(*run).finished[0], (Tokens{1, 2, 3}));
}

}  // namespace
}  // namespace as2d
