// Runs in which the target says timestamps, which no draft has.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "as2d/decode/budget.h"
#include "as2d/decode/strategies/coupled.h"
#include "as2d/decode/strategies/lookup.h"
#include "as2d/decode/strategies/multi.h"
#include "as2d/decode/strategies/pearl.h"
#include "run_for_test.h"

namespace as2d {
namespace {

constexpr TokenId kFirst = 700;

/// Segments of ten tokens: 700 a... 710 710 b... 720.
Tokens Timed(std::size_t segments) {
  Tokens text;
  for (std::size_t i = 0; i < segments; ++i) {
    text.push_back(kFirst + static_cast<TokenId>(10 * i));
    for (TokenId t = 0; t < 10; ++t) text.push_back(static_cast<TokenId>(30 * i) + 3 * t);
    text.push_back(kFirst + static_cast<TokenId>(10 * (i + 1)));
  }
  return text;
}

Tokens Untimed(const Tokens& text) {
  Tokens words;
  std::ranges::copy_if(text, std::back_inserter(words), [](TokenId t) { return t < kFirst; });
  return words;
}

class TimestampsRunTest : public RunTest {
 protected:
  static ScriptedTarget::Options Options() {
    ScriptedTarget::Options options;
    options.first_timestamp = kFirst;
    // Its end lies between the text and the timestamps.
    options.end_token = kFirst - 1;
    return options;
  }

  void Use(const std::string& method) {
    options_.coupled = method == "coupled" || method == "pearl";
    options_.patience = 20s;
    strategy_ = [method](std::size_t budget, Counters* counters) -> std::unique_ptr<Strategy> {
      const auto keys = std::make_shared<const TokenKeys>();
      if (method == "as2d") {
        return std::make_unique<DecoupledDrafting>(keys, std::make_unique<FixedBudget>(budget),
                                                   counters);
      }
      if (method == "coupled") {
        return std::make_unique<CoupledDrafting>(std::make_unique<FixedBudget>(budget));
      }
      if (method == "pearl") return std::make_unique<PearlDrafting>(budget);
      if (method == "multi") return std::make_unique<MultiDrafting>(keys, budget, counters);
      if (method == "lookup") return std::make_unique<LookupDrafting>(budget);
      return std::make_unique<TargetOnly>();
    };
  }

  /// The event that ended window 0.
  Event Finished(const std::shared_ptr<ScriptedDrafter>& drafter, Window window,
                 std::size_t budget = 8) {
    run_ = Start(drafter, budget);
    run_->Submit(std::move(window));
    run_->Finish();
    Event finished;
    for (bool over = false; !over;) {
      for (const Event& event : run_->Poll(20s)) {
        over = over || event.kind == Event::Kind::kRunFinished;
        EXPECT_EQ(event.message, "") << "neither a drafter lost nor a failure";
        if (event.kind == Event::Kind::kWindowFinished) finished = event;
      }
    }
    return finished;
  }

  static Window Timestamped() {
    Window window = MakeWindow(0);
    window.timestamps = true;
    return window;
  }
};

class TimestampsMethodTest : public TimestampsRunTest,
                             public testing::WithParamInterface<std::string> {};

TEST_P(TimestampsMethodTest, SaysWhatTheTargetAloneSays) {
  Use(GetParam());
  const Tokens text = Timed(4);
  for (const std::size_t budget : {1U, 3U, 8U, 16U}) {
    for (const bool right : {true, false}) {
      Target({{0, text}}, Options());
      Window window = Timestamped();
      window.token_times = true;
      const Event finished =
          Finished(Draft({{0, right ? Untimed(text) : Tokens(50, 501)}}), window, budget);
      EXPECT_EQ(finished.tokens, text);
      EXPECT_EQ(finished.reason, FinishReason::kEnd);
      const double sum = std::accumulate(text.begin(), text.end(), 0) + (kFirst - 1);
      EXPECT_NEAR(finished.log_probability, sum / -1000.0, 1e-3) << "of every token and the end";
      EXPECT_EQ(finished.no_speech, 0.25);
      ASSERT_EQ(finished.times.size(), 41U) << "of the text alone";
      EXPECT_EQ(finished.times[40], 40.0F);
    }
  }
}

TEST_P(TimestampsMethodTest, ReachesTheSameLimit) {
  Use(GetParam());
  const Tokens text = Timed(3);
  for (int limit = 1; limit < static_cast<int>(text.size()); ++limit) {
    Target({{0, text}}, Options());
    Window window = Timestamped();
    window.max_tokens = limit;
    const Event finished = Finished(Draft({{0, Untimed(text)}}), window);
    EXPECT_EQ(finished.tokens, Tokens(text.begin(), text.begin() + limit));
    EXPECT_EQ(finished.reason, FinishReason::kLimit);
  }
}

INSTANTIATE_TEST_SUITE_P(Methods, TimestampsMethodTest,
                         testing::Values("target", "as2d", "coupled", "pearl", "multi", "lookup"),
                         [](const auto& method) { return method.param; });

TEST_F(TimestampsRunTest, BetweenTwoSegmentsTheSecondTimestampIsACandidate) {
  ahead_ = 21;
  Use("as2d");
  const Tokens text = Timed(2);
  Target({{0, text}}, Options());
  EXPECT_EQ(Finished(Draft({{0, Untimed(text)}}), Timestamped()).tokens, text);
  // The prompt gives 700. Then nine tokens; the tenth, and 710 in the place of the next one; 710
  // once more with nine tokens; the tenth and 720; the end.
  EXPECT_EQ(Steps(), 5);
  EXPECT_EQ(counters().accepted.Get(), 8 + 1 + 9 + 1);
}

TEST_F(TimestampsRunTest, WithoutTimestampsNothingIsAsked) {
  Use("as2d");
  Target({{0, Text(20)}}, Options());
  const Event finished = Finished(Draft({{0, Text(20)}}), MakeWindow(0));
  EXPECT_EQ(finished.tokens, Text(20));
  EXPECT_TRUE(finished.times.empty());
}

}  // namespace
}  // namespace as2d
