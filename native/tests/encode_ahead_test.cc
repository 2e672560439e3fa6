// What the target's encoder says, on its way to a drafter that needs it; and the encoder one window
// ahead, so that such a drafter has something to do.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "as2d/decode/strategies/pearl.h"
#include "as2d/error.h"
#include "run_for_test.h"

namespace as2d {
namespace {

/// Writes its calls down: E for Encode, P for Prompt, F for Forward, each with its windows.
class RecordingTarget final : public WrappedTarget {
 public:
  explicit RecordingTarget(std::shared_ptr<TargetModel> target)
      : WrappedTarget(std::move(target)) {}

  void Encode(std::span<const float> samples, int slot) override {
    window_[slot] = std::lround(samples.front());
    Write('E', {slot});
    if (window_[slot] == broken_window) throw Error("encoder.onnx: broken");
    while (window_[slot] == endless_window && !cancelled_) std::this_thread::sleep_for(1ms);
    WrappedTarget::Encode(samples, slot);
    encoded = window_[slot];
  }
  FirstToken Prompt(std::span<const TokenId> prompt, const Choice& choice, int slot) override {
    Write('P', {slot});
    return WrappedTarget::Prompt(prompt, choice, slot);
  }
  void Forward(std::span<const Row> rows, std::span<TokenId> next,
               std::span<float> log_probability) override {
    std::vector<int> slots;
    for (const Row& row : rows) {
      if (slots.empty() || slots.back() != row.slot) slots.push_back(row.slot);
    }
    Write('F', slots);
    if (before_step) before_step();
    WrappedTarget::Forward(rows, next, log_probability);
  }

  void Cancel() override {
    cancelled_ = true;
    WrappedTarget::Cancel();
  }

  /// One after the other, with the number of those in a row that are alike.
  std::string calls() const {
    std::string text;
    for (const auto& [call, count] : calls_) {
      if (!text.empty()) text += ' ';
      text += call;
      if (count > 1) text.append("*").append(std::to_string(count));
    }
    return text;
  }

  std::int64_t broken_window = -1;
  std::int64_t endless_window = -1;
  std::function<void()> before_step;
  std::atomic<std::int64_t> encoded{-1};  // the last window

 private:
  void Write(char kind, const std::vector<int>& slots) {
    std::string call(1, kind);
    for (const int slot : slots) call += std::to_string(window_[slot]);
    if (calls_.empty() || calls_.back().first != call) calls_.emplace_back(call, 0);
    ++calls_.back().second;
  }

  std::atomic<bool> cancelled_{false};
  std::map<int, std::int64_t> window_;  // by slot
  std::vector<std::pair<std::string, int>> calls_;
};

class EncodeAheadTest : public RunTest {
 protected:
  /// Three windows of ten tokens, or others. The target begins once all of them are there.
  void Windows(ScriptedTarget::Options options,
               Script script = {{0, Text(10)}, {1, Text(10, 2)}, {2, Text(10, 3)}}) {
    Target(std::move(script), options);
    recorded_ = std::make_shared<RecordingTarget>(target_);
    options_.encode_ahead = true;
    options_.batch_apart = 4;
  }

  std::unique_ptr<as2d::Run> StartRecorded(std::shared_ptr<ScriptedDrafter> drafter = nullptr) {
    std::shared_ptr<Drafter> shared;
    if (drafter) {
      shared = std::make_shared<Drafter>();
      shared->model = std::move(drafter);
    }
    return StartOn(std::make_shared<PatientTarget>(recorded_, [this] { return submitted_.load(); }),
                   shared, 8);
  }

  /// Submits the script's windows with these limits, where it has one.
  void SubmitAll(std::map<std::int64_t, int> limits = {}) {
    for (const auto& [index, text] : script_) {
      run_->Submit(MakeWindow(index, limits.contains(index) ? limits[index] : 400));
    }
    run_->Finish();
    submitted_ = true;
  }

  Result All(std::shared_ptr<ScriptedDrafter> drafter = nullptr) {
    run_ = StartRecorded(std::move(drafter));
    SubmitAll();
    Result result = Collect(*run_);
    EXPECT_EQ(result.error, "");
    EXPECT_EQ(result.finished, script_);
    EXPECT_TRUE(result.lost.empty());
    return result;
  }

  std::shared_ptr<RecordingTarget> recorded_;
  std::atomic<bool> submitted_{false};
};

TEST_F(EncodeAheadTest, TheNextWindowIsEncodedOnceThisOneIsSoFar) {
  Windows({.slots = 2});
  All();
  EXPECT_EQ(recorded_->calls(), "E0 P0 F0*3 E1 F0*7 P1 F1*3 E2 F1*7 P2 F2*10");
}

TEST_F(EncodeAheadTest, AsBeforeWithoutASlotForIt) {
  Windows({.slots = 1});
  All();
  EXPECT_EQ(recorded_->calls(), "E0 P0 F0*10 E1 P1 F1*10 E2 P2 F2*10");
}

TEST_F(EncodeAheadTest, AWindowThatIsOverBeforeThatHoldsNothingUp) {
  Windows({.slots = 2});
  options_.batch_apart = 11;
  All();
  EXPECT_EQ(recorded_->calls(), "E0 P0 F0*10 E1 P1 F1*10 E2 P2 F2*10");
}

TEST_F(EncodeAheadTest, BesideABatch) {
  Windows({.even_rows_only = false, .slots = 3});
  options_.batch = 2;
  All();
  // The second window joins the batch; the third has no place in it until the first is done.
  EXPECT_EQ(recorded_->calls(), "E0 P0 F0*3 E1 P1 F01*3 E2 F01*4 P2 F21*3 F2*7");
}

TEST_F(EncodeAheadTest, ABatchThatTakesAllSlotsLeavesNoneForIt) {
  Windows({.even_rows_only = false, .slots = 2});
  options_.batch = 2;
  All();
  EXPECT_EQ(recorded_->calls(), "E0 P0 F0*3 E1 P1 F01*7 E2 P2 F21*3 F2*7");
}

TEST_F(EncodeAheadTest, AWindowThatIsNotThereYetIsNotWaitedFor) {
  Windows({.slots = 2});
  run_ = StartRecorded();
  submitted_ = true;
  run_->Submit(MakeWindow(0));
  EXPECT_TRUE(WaitUntil([&] { return counters().windows.Get() == 1; }));
  run_->Submit(MakeWindow(1));
  run_->Finish();
  Result result = Collect(*run_);
  EXPECT_EQ(result.finished[1], script_[1]);
  EXPECT_EQ(recorded_->calls(), "E0 P0 F0*10 E1 P1 F1*10");
}

TEST_F(EncodeAheadTest, AWindowThatNothingIsWantedOfIsNotEncoded) {
  Windows({.slots = 2});
  run_ = StartRecorded();
  SubmitAll({{1, 0}});
  std::vector<std::int64_t> order;
  for (bool over = false; !over;) {
    for (const Event& event : run_->Poll(1s)) {
      if (event.kind == Event::Kind::kWindowFinished) order.push_back(event.window);
      over = over || event.kind == Event::Kind::kRunFinished;
    }
  }
  EXPECT_EQ(order, (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_EQ(recorded_->calls(), "E0 P0 F0*10 E2 P2 F2*10");
}

TEST_F(EncodeAheadTest, AnEncoderThatFailsFailsInItsTurn) {
  Windows({.slots = 2});
  recorded_->broken_window = 1;
  run_ = StartRecorded(Draft(script_, {.needs_encoding = true}));
  SubmitAll();
  Result result = Collect(*run_);
  EXPECT_EQ(result.error, "encoder.onnx: broken");
  EXPECT_EQ(result.finished, (Script{{0, script_[0]}})) << "what came before is whole";
  EXPECT_TRUE(result.lost.empty());
}

TEST_F(EncodeAheadTest, CancelWhileItEncodesAheadKeepsWhatWasCommitted) {
  Windows({.slots = 2});
  recorded_->endless_window = 1;
  run_ = StartRecorded(Draft({}, {.needs_encoding = true}));
  SubmitAll();
  EXPECT_TRUE(WaitUntil([&] { return counters().committed.Get() == 4; }));
  run_->Cancel();
  const Result result = Collect(*run_);
  EXPECT_TRUE(result.cancelled);
  EXPECT_TRUE(result.lost.empty());
  const Tokens kept(script_[0].begin(), script_[0].begin() + 4);
  EXPECT_EQ(result.finished, (Script{{0, kept}})) << "the other one had not begun";
  EXPECT_EQ(recorded_->calls(), "E0 P0 F0*3 E1");
}

TEST_F(EncodeAheadTest, EventsAndTimesAreOfTheRightWindow) {
  Windows({.slots = 2, .encode_time = 20ms});
  options_.tell_encodings = true;
  run_ = StartRecorded();
  SubmitAll();
  std::vector<std::pair<Activity, std::int64_t>> activities;
  std::vector<std::pair<std::int64_t, std::vector<float>>> encodings;
  std::vector<double> durations;
  for (bool over = false; !over;) {
    for (const Event& event : run_->Poll(1s)) {
      if (event.kind == Event::Kind::kLaneChanged) {
        activities.emplace_back(event.activity, event.window);
      }
      if (event.kind == Event::Kind::kEncoded) encodings.emplace_back(event.window, event.encoding);
      if (event.kind == Event::Kind::kWindowFinished) durations.push_back(event.duration);
      over = over || event.kind == Event::Kind::kRunFinished;
    }
  }
  using enum Activity;
  // Before a window is taken into the place of the one before, nobody works.
  EXPECT_EQ(activities, (std::vector<std::pair<Activity, std::int64_t>>{{kEncoding, 0},
                                                                        {kPrompting, 0},
                                                                        {kAlone, 0},
                                                                        {kEncoding, 1},
                                                                        {kAlone, 0},
                                                                        {kIdle, -1},
                                                                        {kPrompting, 1},
                                                                        {kAlone, 1},
                                                                        {kEncoding, 2},
                                                                        {kAlone, 1},
                                                                        {kIdle, -1},
                                                                        {kPrompting, 2},
                                                                        {kAlone, 2},
                                                                        {kIdle, -1},
                                                                        {kDone, -1}}));
  EXPECT_EQ(encodings, (std::vector<std::pair<std::int64_t, std::vector<float>>>{
                           {0, {0}}, {1, {1}}, {2, {2}}}));
  ASSERT_EQ(durations.size(), 3U);
  double sum = 0;
  for (const double duration : durations) {
    EXPECT_GE(duration, 0.02) << "its own encoding is a window's";
    sum += duration;
  }
  EXPECT_LE(sum, run_->wall_seconds()) << "and no other's";
  EXPECT_GE(counters().nanoseconds.encode.Get(), 60'000'000);
}

// Drafters that need what the encoder says. They fail, and are lost, when they get another's.

class NeedsEncodingTest : public EncodeAheadTest {
 protected:
  static std::shared_ptr<ScriptedDrafter> Hearing(Script script) {
    return Draft(std::move(script), {.needs_encoding = true});
  }
};

TEST_F(NeedsEncodingTest, DraftsTheNextWindowWhileTheTargetDecodesThisOne) {
  Windows({.slots = 2});
  bool drafted = false;
  recorded_->before_step = [&] {
    if (recorded_->encoded != 1 || drafted) return;
    drafted = WaitUntil([&] { return counters().drafted.Get() == 22; });
  };
  All(Hearing(script_));
  EXPECT_TRUE(drafted);
}

TEST_F(NeedsEncodingTest, HearsNothingBeforeTheTargetDoes) {
  Windows({.slots = 2});
  run_ = StartRecorded(Hearing(script_));
  for (const auto& [index, text] : script_) run_->Submit(MakeWindow(index));
  run_->Finish();
  std::this_thread::sleep_for(30ms);
  EXPECT_EQ(counters().drafted.Get(), 0);
  submitted_ = true;
  const Result result = Collect(*run_);
  EXPECT_EQ(result.finished, script_);
  EXPECT_TRUE(result.lost.empty());
}

TEST_F(NeedsEncodingTest, OneWindowAfterTheOther) {
  // However far the drafter gets: many windows, some empty, with and without one ahead.
  for (const int slots : {1, 2}) {
    Script script;
    for (int i = 0; i < 30; ++i) {
      script[i] = Text(static_cast<std::size_t>(i % 7) * 5, static_cast<unsigned>(i) + 1);
    }
    Windows({.slots = slots, .encode_time = 300us, .step_time = 30us}, script);
    All(Hearing(script));
    EXPECT_GT(counters().drafted.Get(), 0);
    EXPECT_GE(counters().drafted.Get(), counters().accepted.Get());
  }
}

TEST_F(NeedsEncodingTest, WindowsThatComeLate) {
  Windows({.slots = 2});
  run_ = StartRecorded(Hearing(script_));
  submitted_ = true;
  for (const auto& [index, text] : script_) {
    run_->Submit(MakeWindow(index));
    EXPECT_TRUE(WaitUntil([&] { return counters().windows.Get() == index + 1; }));
  }
  run_->Finish();
  const Result result = Collect(*run_);
  EXPECT_EQ(result.finished, script_);
  EXPECT_TRUE(result.lost.empty());
}

TEST_F(NeedsEncodingTest, AWindowThatIsNotEncodedIsNotDrafted) {
  Windows({.slots = 2});
  run_ = StartRecorded(Hearing(script_));
  SubmitAll({{0, 0}, {2, 0}});
  Result result = Collect(*run_);
  EXPECT_EQ(result.error, "");
  EXPECT_EQ(result.finished, (Script{{0, {}}, {1, script_[1]}, {2, {}}}));
  EXPECT_TRUE(result.lost.empty());
}

TEST_F(NeedsEncodingTest, CancelEndsTheWaitForAnEncoding) {
  Windows({.slots = 2, .encode_time = 1000s});
  run_ = StartRecorded(Hearing(script_));
  SubmitAll();
  std::this_thread::sleep_for(20ms);
  run_->Cancel();
  const Result result = Collect(*run_);
  EXPECT_TRUE(result.cancelled);
  EXPECT_TRUE(result.lost.empty());
}

TEST_F(NeedsEncodingTest, ATargetThatFailsEndsTheWaitForAnEncoding) {
  Windows({.slots = 2});
  recorded_->broken_window = 0;
  run_ = StartRecorded(Hearing(script_));
  SubmitAll();
  const Result result = Collect(*run_);
  EXPECT_EQ(result.error, "encoder.onnx: broken");
  EXPECT_TRUE(result.lost.empty());
}

// Coupled lanes.

TEST_F(NeedsEncodingTest, ACoupledDrafterIsAskedOnceTheTargetHasEncoded) {
  Windows({.slots = 2});
  options_.coupled = true;
  strategy_ = [](std::size_t budget, Counters*) { return std::make_unique<PearlDrafting>(budget); };
  All(Hearing(script_));
  EXPECT_GT(counters().accepted.Get(), 0);
  run_ = StartRecorded(Hearing(script_));
  SubmitAll({{0, 0}, {2, 0}});
  const Result result = Collect(*run_);
  EXPECT_EQ(result.finished, (Script{{0, {}}, {1, script_[1]}, {2, {}}}));
  EXPECT_TRUE(result.lost.empty());
}

TEST_F(NeedsEncodingTest, AnyOtherIsAskedBeforeThat) {
  Windows({.slots = 2});
  options_.coupled = true;
  strategy_ = [](std::size_t budget, Counters*) { return std::make_unique<PearlDrafting>(budget); };
  std::atomic<bool> drafted{false};
  gate_ = [&] {
    if (counters().drafted.Get() >= 8) drafted = true;
    return drafted.load();
  };
  ExpectExact(Draft(script_), 8);
  EXPECT_TRUE(drafted) << "both encode at once";
}

}  // namespace
}  // namespace as2d
