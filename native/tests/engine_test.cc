// The whole engine on small random Whispers: real graphs, real lanes, both busy.
#include "as2d/engine.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "as2d/error.h"
#include "as2d/platform/topology.h"
#include "bundles_for_test.h"

namespace as2d {
namespace {

using namespace std::chrono_literals;
using Texts = std::map<std::int64_t, std::vector<TokenId>>;

Engine MakeEngine(const LaneCores& lane = {}) {
  return Engine(std::getenv("AS2D_ORT_LIBRARY"), BundlePath("one"), lane);
}

std::unique_ptr<as2d::Run> Begin(Engine& engine, Method method, std::size_t budget, int windows = 3,
                                 RunOptions options = {}) {
  auto run = engine.Start(method, budget, std::move(options));
  const Bundle bundle = Bundle::Open(BundlePath("one"));
  for (int i = 0; i < windows; ++i) {
    Window window;
    window.index = i;
    window.samples =
        Sound(16000 * (static_cast<std::size_t>(i) + 1), 0.01F * static_cast<float>(i + 1));
    window.prompt = {bundle.RequiredToken("start"), bundle.RequiredToken("no_timestamps")};
    window.max_tokens = 40;
    window.language = "en";
    run->Submit(std::move(window));
  }
  run->Finish();
  return run;
}

/// `ahead`: how many windows the target encoded before the one before them was finished.
Texts Collect(as2d::Run& run, std::string* lost = nullptr, int* ahead = nullptr) {
  Texts texts;
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  while (std::chrono::steady_clock::now() < deadline) {
    for (const Event& event : run.Poll(0.1s)) {
      if (event.kind == Event::Kind::kWindowFinished) texts[event.window] = event.tokens;
      if (event.kind == Event::Kind::kLaneChanged && event.activity == Activity::kEncoding &&
          event.lane == LaneName::kTarget && event.window > 0 &&
          !texts.contains(event.window - 1) && ahead != nullptr) {
        ++*ahead;
      }
      if (event.kind == Event::Kind::kDrafterLost && lost != nullptr) *lost = event.message;
      if (event.kind != Event::Kind::kRunFinished) continue;
      EXPECT_EQ(event.message, "");
      return texts;
    }
  }
  ADD_FAILURE() << "the run did not end";
  return texts;
}

Texts Alone() {
  Engine engine = MakeEngine();
  return Collect(*Begin(engine, Method::kTarget, 0));
}

TEST(EngineTest, TargetAsItsOwnDrafterIsRightEveryTime) {
  const Texts alone = Alone();
  ASSERT_EQ(alone.size(), 3U);
  Engine engine = MakeEngine();
  engine.LoadDrafter(BundlePath("one"), {});
  const auto run = Begin(engine, Method::kAs2d, 7);
  EXPECT_EQ(Collect(*run), alone);
  EXPECT_EQ(run->counters().accepted.Get(), run->counters().proposed.Get());
}

TEST(EngineTest, AnotherModelAsDrafterChangesNothing) {
  const Texts alone = Alone();
  Engine engine = MakeEngine();
  engine.LoadDrafter(BundlePath("two"), {});
  for (const std::size_t budget : {1U, 4U, 8U, 16U}) {
    EXPECT_EQ(Collect(*Begin(engine, Method::kAs2d, budget)), alone) << budget;
  }
}

constexpr Method kMethods[] = {Method::kTarget,   Method::kAs2d,    Method::kCoupled,
                               Method::kAdaptive, Method::kPearl,   Method::kMulti,
                               Method::kLookup,   Method::kBatched, Method::kAnchored};

TEST(EngineTest, EveryMethodWithEveryDrafterSaysTheSame) {
  constexpr int kWindows = 2;
  Engine engine = MakeEngine();
  const Texts alone = Collect(*Begin(engine, Method::kTarget, 0, kWindows));
  for (const std::string drafter : {"one", "two", "adapter", "ctc"}) {
    const bool itself = drafter == "one";
    engine.LoadDrafter(BundlePath(drafter), {});
    for (const Method method : kMethods) {
      if (!itself && !NeedsDrafter(method)) continue;
      SCOPED_TRACE(drafter + " " + std::to_string(static_cast<int>(method)));
      const auto run = Begin(engine, method, 5, kWindows);
      std::string lost;
      int ahead = 0;
      EXPECT_EQ(Collect(*run, &lost, &ahead), alone);
      EXPECT_EQ(lost, "");
      const bool head = drafter == "adapter" || drafter == "ctc";
      const bool decoupled = method == Method::kAs2d || method == Method::kMulti;
      if (method != Method::kBatched) {
        EXPECT_EQ(ahead, head && decoupled ? 1 : 0);
      }
      const Counters& counters = run->counters();
      if (method == Method::kCoupled) {
        EXPECT_GT(counters.proposed.Get(), 0);
      }
      if (itself && (method == Method::kCoupled || method == Method::kPearl)) {
        EXPECT_GT(counters.proposed.Get(), 0);
        EXPECT_EQ(counters.accepted.Get(), counters.proposed.Get());
      }
    }
  }
}

TEST(EngineTest, ABatchSaysWhatOneWindowAtATimeDoes) {
  const Texts alone = Alone();
  for (const std::size_t windows : {0U, 2U, 1000U}) {
    Engine engine = MakeEngine();
    const auto run = Begin(engine, Method::kBatched, windows);
    EXPECT_EQ(Collect(*run), alone) << windows;
    EXPECT_EQ(run->counters().windows.Get(), 3);
    // The slots that are there now change nothing for the others.
    EXPECT_EQ(Collect(*Begin(engine, Method::kLookup, 4)), alone);
  }
}

TEST(EngineTest, WhatAdaptsSaysTheSame) {
  constexpr int kWindows = 7;  // enough to compare without costs, and to drop with them
  Engine engine = MakeEngine();
  const Texts alone = Collect(*Begin(engine, Method::kTarget, 0, kWindows));
  StepCosts costs;
  costs.alone = CostCurve(std::map<int, double>{{2, 1e-9}});
  costs.drafted = CostCurve(std::map<int, double>{{2, 1.0}, {8, 1.3}, {16, 2.0}});
  for (const std::string drafter : {"one", "adapter", "ctc"}) {
    engine.LoadDrafter(BundlePath(drafter), {});
    for (const std::size_t batch : {1U, 3U}) {
      SCOPED_TRACE(drafter + " " + std::to_string(batch));
      RunOptions options;
      options.adaptive = true;
      options.batch = batch;
      // Not all combinations: the sanitizers make this the longest of the tests.
      const Method method = batch == 1 ? Method::kAs2d : Method::kMulti;
      if (drafter != "ctc") options.costs = costs;
      std::string lost;
      const auto run = Begin(engine, method, 7, kWindows, options);
      EXPECT_EQ(Collect(*run, &lost), alone);
      EXPECT_EQ(lost, "");
    }
  }
}

TEST(EngineTest, MeasuresRealModelsAndRunsAfterwards) {
  const Texts alone = Alone();
  Engine engine = MakeEngine();
  const std::vector<int> rows = {1, 2, 9};
  Window window;
  window.samples = Sound(16000, 0.01F);
  window.language = "en";
  for (const std::string drafter : {"two", "adapter"}) {
    SCOPED_TRACE(drafter);
    engine.LoadDrafter(BundlePath(drafter), {});
    for (const bool lend : {true, false}) {
      const TimingOptions options = {.lend = lend};
      EXPECT_EQ(engine.TimeEncode(1, 2, options).size(), 2U);
      const auto steps = engine.TimeSteps(rows, 3, options);
      ASSERT_EQ(steps.size(), 3U);
      for (const auto& times : steps) EXPECT_EQ(times.size(), 3U);
      const DraftTiming draft = engine.TimeDraft(window, options);
      EXPECT_TRUE(draft.complete);
      EXPECT_GT(draft.encode, 0);
    }
    const TogetherTiming together = engine.TimeTogether(rows, 0.05, window, true);
    EXPECT_EQ(together.steps.size(), 3U);
    EXPECT_FALSE(together.drafts.empty());
    EXPECT_EQ(Collect(*Begin(engine, Method::kAs2d, 5)), alone);
  }
}

TEST(EngineTest, AScriptedTargetTakesAsManyWindowsAsItHasSlots) {
  for (const int slots : {1, 2}) {
    Engine engine({{0, {1, 2, 3}}, {1, {4, 5, 6, 7}}, {2, {8}}}, {.slots = slots});
    auto run = engine.Start(Method::kBatched, 8, {});
    for (int i = 0; i < 3; ++i) {
      Window window;
      window.index = i;
      window.samples = {static_cast<float>(i)};
      window.prompt = {900};
      window.max_tokens = 10;
      run->Submit(std::move(window));
    }
    run->Finish();
    EXPECT_EQ(Collect(*run), (Texts{{0, {1, 2, 3}}, {1, {4, 5, 6, 7}}, {2, {8}}}));
  }
}

TEST(EngineTest, MethodsHaveNames) {
  for (const char* const name : {"coupled", "adaptive", "pearl", "multi", "as2d"}) {
    ASSERT_TRUE(MethodOf(name)) << name;
    EXPECT_TRUE(NeedsDrafter(*MethodOf(name))) << name;
  }
  for (const char* const name : {"target", "lookup", "batched"}) {
    ASSERT_TRUE(MethodOf(name)) << name;
    EXPECT_FALSE(NeedsDrafter(*MethodOf(name))) << name;
  }
  EXPECT_FALSE(MethodOf("best"));
  EXPECT_FALSE(MethodOf(""));
}

TEST(EngineTest, WidthOfTheLaneChangesNothing) {
  Engine engine = MakeEngine({.cores = {}, .threads = 2});
  EXPECT_EQ(Collect(*Begin(engine, Method::kTarget, 0)), Alone());
}

TEST(EngineTest, OneRunAfterTheOtherGivesTheSame) {
  const Texts alone = Alone();
  Engine engine = MakeEngine();
  engine.LoadDrafter(BundlePath("two"), {});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Collect(*Begin(engine, i % 2 == 0 ? Method::kAs2d : Method::kTarget, 8)), alone);
  }
}

TEST(EngineTest, LanesAreWhereTheyWereAskedToBe) {
  const std::vector<int> cores = ReadTopology().Cores();
  if (!ReadTopology().can_pin) GTEST_SKIP() << "threads cannot be pinned here";
  const int first = cores.front();
  const int last = cores.back();
  Engine engine = MakeEngine({.cores = {first}, .threads = 1});
  engine.LoadDrafter(BundlePath("two"), {.cores = {last}, .threads = 1});
  Collect(*Begin(engine, Method::kAs2d, 8));
  for (const auto& [report, core] :
       {std::pair{engine.target_report(), first}, std::pair{engine.draft_report(), last}}) {
    EXPECT_EQ(report.cores, std::vector<int>{core});
    ASSERT_EQ(report.threads.size(), 2U) << "the lane's own, and one that helps other lanes";
    for (const WorkerReport& thread : report.threads) {
      EXPECT_EQ(thread.actual, CpuMask({core}));
      EXPECT_TRUE(thread.AsRequested());
    }
  }
  EXPECT_EQ(engine.target_report().threads[0].name, "as2d-target-0");
  EXPECT_EQ(engine.draft_report().threads[0].name, "as2d-draft-0");
}

TEST(EngineTest, ARefusedCoreIsReportedBeforeTheFirstRun) {
  const Topology topology = ReadTopology();
  if (!topology.can_pin) GTEST_SKIP() << "threads cannot be pinned here";
  const int none = CpuMask::kMaxCores - 1;
  Engine engine = MakeEngine({.cores = {topology.Cores().front(), none}, .threads = 2});
  const LaneReport report = engine.target_report();
  int refused = 0;
  for (const WorkerReport& thread : report.threads) {
    EXPECT_EQ(thread.AsRequested(), !thread.requested.Contains(none)) << thread.name;
    if (thread.refused.empty()) continue;
    ++refused;
    EXPECT_EQ(thread.actual, *topology.allowed) << "it is as free as it was";
  }
  EXPECT_GT(refused, 0);
  EXPECT_LT(refused, static_cast<int>(report.threads.size()));
  EXPECT_EQ(Collect(*Begin(engine, Method::kTarget, 0)), Alone());
}

TEST(EngineTest, CancelStopsRealGraphs) {
  Engine engine = MakeEngine();
  engine.LoadDrafter(BundlePath("two"), {});
  for (const Method method : {Method::kAs2d, Method::kCoupled, Method::kPearl, Method::kBatched}) {
    for (const auto delay : {0ms, 5ms, 30ms, 100ms}) {
      auto run = Begin(engine, method, 8);
      std::this_thread::sleep_for(delay);
      run->Cancel();
      std::string lost;
      Collect(*run, &lost);
      EXPECT_EQ(lost, "") << "a drafter that was cancelled is not lost";
    }
  }
  EXPECT_EQ(Collect(*Begin(engine, Method::kAs2d, 8)), Alone()) << "and it works as before";
}

TEST(EngineTest, RunsOneAtATime) {
  Engine engine({{0, {1, 2, 3}}}, {});
  auto run = engine.Start(Method::kTarget, 0, {});
  EXPECT_THROW(engine.Start(Method::kTarget, 0, {}), Error);
  run->Finish();
  Collect(*run);
  run = engine.Start(Method::kTarget, 0, {});  // it is over, though not destroyed yet
  EXPECT_THROW(engine.Start(Method::kTarget, 0, {}), Error);
  run.reset();
  EXPECT_NE(engine.Start(Method::kTarget, 0, {}), nullptr);
}

TEST(EngineTest, RefusesABundleThatDoesNotDescribeItsGraphs) {
  for (const auto& [line, replacement] : std::vector<std::pair<std::string, std::string>>{
           {"context: ", "context: 1000"},
           {"vocabulary_size: ", "vocabulary_size: 100000"},
           {"family: ", "family: moonshine"},
           {"family: ", "family: whisper\nlanguage: en 1\nlanguage: de 2"}}) {
    const ChangedBundle bundle("one", line, replacement);
    Engine engine = MakeEngine();
    EXPECT_THROW(engine.LoadDrafter(bundle.folder(), {}), Error) << replacement;
  }
}

TEST(EngineTest, RefusesWhatIsNoBundle) {
  EXPECT_THROW(Engine(std::getenv("AS2D_ORT_LIBRARY"), "/nonexistent", {}), Error);
  EXPECT_THROW(Engine("/nonexistent.so", BundlePath("one"), {}), Error);
  Engine engine = MakeEngine();
  EXPECT_THROW(engine.LoadDrafter("/nonexistent", {}), Error);
  EXPECT_FALSE(engine.has_drafter());
  EXPECT_EQ(Collect(*Begin(engine, Method::kAs2d, 8)), Alone()) << "without one it goes alone";
  EXPECT_THROW(engine.LanguageProbabilities(Sound(1000, 0.1F)), Error) << "it knows English only";
}

}  // namespace
}  // namespace as2d
