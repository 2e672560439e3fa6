// What each strategy proposes, step by step; whole runs are in methods_test.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "as2d/decode/budget.h"
#include "as2d/decode/strategies/coupled.h"
#include "as2d/decode/strategies/decoupled.h"
#include "as2d/decode/strategies/lookup.h"
#include "as2d/decode/strategies/multi.h"
#include "as2d/decode/strategies/pearl.h"
#include "as2d/decode/strategy.h"

namespace as2d {
namespace {

using namespace std::chrono_literals;
using Tokens = std::vector<TokenId>;
using Runs = std::vector<Tokens>;

constexpr std::size_t kRoom = 100;

std::shared_ptr<const Window> WindowWith(Tokens prompt) {
  auto window = std::make_shared<Window>();
  window->prompt = std::move(prompt);
  return window;
}

Runs Propose(Strategy& strategy, std::size_t room = kRoom) {
  CandidateRuns runs;
  strategy.Propose(room, &runs);
  Runs found;
  for (const auto& run : runs.runs()) found.emplace_back(run.begin(), run.end());
  return found;
}

TEST(CandidateRunsTest, TakesNoEmptyRunsAndNoMoreThanItHolds) {
  CandidateRuns runs;
  runs.Add({});
  EXPECT_TRUE(runs.empty());
  const Tokens tokens = {1, 2};
  for (std::size_t i = 0; i < CandidateRuns::kMost + 2; ++i) runs.Add(tokens);
  EXPECT_EQ(runs.size(), CandidateRuns::kMost);
  runs.Clear();
  EXPECT_TRUE(runs.empty());
}

// Budgets.

TEST(AdaptiveBudgetTest, GrowsByTwoAndShrinksByOneWithinItsBounds) {
  AdaptiveBudget budget(8);
  EXPECT_EQ(budget.Next(), 4U);
  std::vector<std::size_t> told;
  for (const auto& [proposed, accepted] : std::vector<std::pair<std::size_t, std::size_t>>{
           {4, 4}, {6, 6}, {8, 8}, {8, 7}, {7, 0}, {6, 6}, {1, 1}}) {
    budget.Observe(proposed, accepted);
    told.push_back(budget.Next());
  }
  EXPECT_EQ(told, (std::vector<std::size_t>{6, 8, 8, 7, 6, 8, 8}));
  for (int i = 0; i < 20; ++i) budget.Observe(1, 0);
  EXPECT_EQ(budget.Next(), 1U);
  budget.Observe(1, 1);
  EXPECT_EQ(budget.Next(), 3U);
}

TEST(AdaptiveBudgetTest, NeverMoreThanTheMost) {
  AdaptiveBudget one(1);
  EXPECT_EQ(one.Next(), 1U);
  one.Observe(1, 1);
  EXPECT_EQ(one.Next(), 1U);
  EXPECT_EQ(AdaptiveBudget(0).Next(), 0U);
}

// Looking up.

class LookupTest : public testing::Test {
 protected:
  void Begin(Tokens prompt) { lookup_.BeginWindow({.window = WindowWith(std::move(prompt))}); }
  void Commit(const Tokens& tokens) { lookup_.Committed(tokens); }

  LookupDrafting lookup_{4};
};

TEST_F(LookupTest, ProposesWhatCameAfterTheSameTokens) {
  Begin({90, 91});
  Commit({1, 2, 3, 4, 5, 6, 7});
  EXPECT_EQ(Propose(lookup_), Runs{});
  Commit({1});
  EXPECT_EQ(Propose(lookup_), Runs{}) << "one token comes again by chance";
  Commit({2});
  EXPECT_EQ(Propose(lookup_), (Runs{{3, 4, 5, 6}}));
  EXPECT_EQ(Propose(lookup_, 2), (Runs{{3, 4}}));
  EXPECT_EQ(Propose(lookup_, 0), Runs{});
}

TEST_F(LookupTest, PrefersTheLongestAndOfThoseTheLatest) {
  Begin({90, 91});
  Commit({8, 1, 2, 3, 7, 1, 2, 4, 7, 1, 2, 5, 8, 1, 2});
  EXPECT_EQ(Propose(lookup_), (Runs{{3, 7, 1, 2}})) << "8, 1, 2 is longer than 1, 2";
  Commit({9, 1, 2});
  EXPECT_EQ(Propose(lookup_), (Runs{{9, 1, 2}})) << "the last 1, 2, up to the end of what is known";
}

TEST_F(LookupTest, ARepetitionOfOneTokenIsOne) {
  Begin({90, 91});
  Commit({5, 5});
  EXPECT_EQ(Propose(lookup_), Runs{});
  Commit({5});
  EXPECT_EQ(Propose(lookup_), (Runs{{5}}));
}

TEST_F(LookupTest, KnowsThePromptAndTheWindowsBefore) {
  Begin({90, 1, 2, 3});
  Commit({1, 2});
  EXPECT_EQ(Propose(lookup_), (Runs{{3, 1, 2}}));
  Commit({6, 7, 8});
  lookup_.EndWindow();
  Begin({90});
  Commit({6, 7});
  EXPECT_EQ(Propose(lookup_), (Runs{{8, 90, 6, 7}}));
}

TEST_F(LookupTest, KnowsWhatTheWindowNamesAsItsSource) {
  Window window;
  window.prompt = {90};
  window.source = {1, 2, 3, 4, 5};
  lookup_.BeginWindow({.window = std::make_shared<const Window>(std::move(window))});
  Commit({2, 3});
  EXPECT_EQ(Propose(lookup_), (Runs{{4, 5, 90, 2}}));
}

/// Takes what it is told for the next answer, and remembers what it was told of the last run.
class ToldBudget final : public BudgetPolicy {
 public:
  std::size_t Next() override { return next; }
  void Observe(std::size_t proposed, std::size_t accepted) override {
    observed.emplace_back(proposed, accepted);
  }
  std::size_t next = 4;
  std::vector<std::pair<std::size_t, std::size_t>> observed;
};

TEST(LookupBudgetTest, IsThatOfLookUpsByAsManyTokens) {
  std::vector<ToldBudget*> budgets;
  LookupDrafting lookup([&] {
    auto made = std::make_unique<ToldBudget>();
    budgets.push_back(made.get());
    return made;
  });
  ASSERT_EQ(budgets.size(), 3U);
  budgets[0]->next = 1;
  budgets[1]->next = 2;
  const Tokens text = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  lookup.BeginWindow({.window = WindowWith(text)});
  lookup.Committed(Tokens{2, 3});
  EXPECT_EQ(Propose(lookup), (Runs{{4}})) << "found by two";
  lookup.Committed(Tokens{4});
  EXPECT_EQ(Propose(lookup), (Runs{{5, 6}})) << "found by three";
  lookup.Committed(Tokens{5, 6, 7});
  EXPECT_EQ(Propose(lookup), (Runs{{8, 9, 2, 3}})) << "found by six";
  const Tokens run = {8, 9, 2};
  CandidateRuns runs;
  runs.Add(run);
  lookup.Verified(runs, 0, 2);
  EXPECT_TRUE(budgets[0]->observed.empty());
  EXPECT_TRUE(budgets[1]->observed.empty());
  using Observed = std::vector<std::pair<std::size_t, std::size_t>>;
  EXPECT_EQ(budgets[2]->observed, (Observed{{3, 2}}));
  budgets[2]->next = 0;
  EXPECT_EQ(Propose(lookup), Runs{}) << "nothing pays";
}

TEST_F(LookupTest, ForgetsWhatIsFarBack) {
  Begin({90});
  Commit({1, 2, 3});
  Tokens filler;
  for (TokenId i = 0; i < 4096; ++i) filler.push_back(1000 + i);
  Commit(filler);
  Commit({1, 2});
  EXPECT_EQ(Propose(lookup_), (Runs{{3, 1000, 1001, 1002}})) << "within a window nothing is lost";
  Begin({90});
  Commit({3, 1000});
  EXPECT_EQ(Propose(lookup_), Runs{}) << "but from one window to the next";
  Commit({1002, 1003});
  EXPECT_EQ(Propose(lookup_), (Runs{{1004, 1005, 1006, 1007}}));
}

// Decoupled, from one place or several.

class DecoupledTest : public testing::Test {
 protected:
  DecoupledDrafting Make(std::size_t places = 1, std::size_t budget = 3) {
    return DecoupledDrafting(std::make_shared<const TokenKeys>(),
                             std::make_unique<FixedBudget>(budget), &counters_, places);
  }

  /// As the target lane does it.
  void Verified(Strategy& strategy, const Runs& left, std::size_t best, std::size_t accepted) {
    CandidateRuns runs;
    for (const Tokens& run : left) runs.Add(run);
    strategy.Verified(runs, best, accepted);
  }

  Counters counters_;
  DraftStream stream_{100};
};

TEST_F(DecoupledTest, NeverWaitsAndTakesWhatIsThere) {
  auto strategy = Make();
  strategy.BeginWindow({.window = WindowWith({90}), .stream = &stream_});
  EXPECT_EQ(Propose(strategy), Runs{});
  stream_.Append(Tokens{1, 2});
  EXPECT_EQ(Propose(strategy), (Runs{{1, 2}}));
  strategy.Committed(Tokens{1});
  stream_.Append(Tokens{3, 4, 5});
  EXPECT_EQ(Propose(strategy), (Runs{{2, 3, 4}}));
  EXPECT_EQ(Propose(strategy, 1), (Runs{{2}}));
  EXPECT_EQ(Propose(strategy, 0), Runs{});
}

TEST_F(DecoupledTest, ProposesFromOtherPlacesWithOtherBeginnings) {
  auto strategy = Make(3);
  strategy.BeginWindow({.window = WindowWith({90}), .stream = &stream_});
  stream_.Append(Tokens{1, 9, 2, 3, 4, 5});
  strategy.Committed(Tokens{1});
  const Runs runs = Propose(strategy);
  EXPECT_EQ(runs, (Runs{{9, 2, 3}, {2, 3, 4}, {1, 9, 2}}));
  Verified(strategy, runs, 1, 2);
  EXPECT_EQ(counters_.realignments.Get(), 1) << "the second run begins one further on";
  EXPECT_EQ(counters_.lead_total.Get(), 4) << "four tokens after that place";
  strategy.EndWindow();
  EXPECT_EQ(counters_.stale_drafts.Get(), 1) << "the last token alone was never proposed";
}

TEST_F(DecoupledTest, WithoutAChannelOrStreamItIsTheTargetAlone) {
  auto strategy = Make();
  strategy.BeginWindow({});
  strategy.Committed(Tokens{1});
  EXPECT_EQ(Propose(strategy), Runs{});
  strategy.EndWindow();
}

// Several runs.

class MultiTest : public DecoupledTest {
 protected:
  MultiDrafting multi_{std::make_shared<const TokenKeys>(), 3, &counters_};
};

TEST_F(MultiTest, ProposesTwoPlacesAndWhatWasLookedUp) {
  multi_.BeginWindow({.window = WindowWith({90, 5, 6, 7, 8}), .stream = &stream_});
  stream_.Append(Tokens{5, 6, 1, 2, 3, 4});
  multi_.Committed(Tokens{5, 6});
  EXPECT_EQ(Propose(multi_), (Runs{{1, 2, 3}, {2, 3, 4}, {7, 8, 5}}));
}

TEST_F(MultiTest, DoesNotProposeWhatBeginsAlikeTwice) {
  multi_.BeginWindow({.window = WindowWith({90, 5, 6, 1, 8}), .stream = &stream_});
  stream_.Append(Tokens{5, 6, 1, 2, 3, 4});
  multi_.Committed(Tokens{5, 6});
  EXPECT_EQ(Propose(multi_), (Runs{{1, 2, 3}, {2, 3, 4}}));
}

TEST_F(MultiTest, CountsDraftsThatLostToWhatWasLookedUpAsProposed) {
  multi_.BeginWindow({.window = WindowWith({90, 5, 6, 7, 8}), .stream = &stream_});
  stream_.Append(Tokens{5, 6, 1, 2, 3, 4, 9});
  multi_.Committed(Tokens{5, 6});
  const Runs runs = Propose(multi_);
  ASSERT_EQ(runs.size(), 3U);
  Verified(multi_, runs, 2, 2);
  EXPECT_EQ(counters_.realignments.Get(), 0);
  multi_.EndWindow();
  EXPECT_EQ(counters_.stale_drafts.Get(), 3)
      << "of 5, 6, 1, 2, 3, 4, 9: the first two and the last";
}

// Coupled, with the test as the draft lane.

class CoupledTest : public testing::Test {
 protected:
  ~CoupledTest() override {
    channel_.Close();
    if (lane_.joinable()) lane_.join();
  }

  /// Answers the next request, and keeps it.
  void Answer(Tokens tokens) {
    if (lane_.joinable()) lane_.join();
    lane_ = std::thread([this, tokens = std::move(tokens)] {
      request_ = channel_.Next();
      if (request_) channel_.Answer({.tokens = tokens});
    });
  }

  /// The request that was answered.
  const DraftRequest& Asked() {
    if (lane_.joinable()) lane_.join();
    return *request_;
  }

  DraftChannel channel_{20s};
  std::thread lane_;
  std::optional<DraftRequest> request_;
};

TEST_F(CoupledTest, AsksForWhatFollowsTheCommittedPrefix) {
  CoupledDrafting coupled(std::make_unique<FixedBudget>(4));
  const auto window = WindowWith({90});
  coupled.BeginWindow({.window = window, .channel = &channel_});
  coupled.Committed(Tokens{1});
  Answer({2, 3, 4, 5});
  EXPECT_EQ(Propose(coupled), (Runs{{2, 3, 4, 5}}));
  EXPECT_EQ(Asked().window, window);
  EXPECT_EQ(Asked().history, Tokens{1});
  EXPECT_EQ(Asked().count, 4U);
  EXPECT_EQ(Asked().least_confidence, 0);

  coupled.Committed(Tokens{2, 8});
  Answer({7});
  EXPECT_EQ(Propose(coupled, 2), (Runs{{7}}));
  EXPECT_EQ(Asked().history, (Tokens{1, 2, 8}));
  EXPECT_EQ(Asked().count, 2U) << "no more than there is room for";

  coupled.BeginWindow({.window = window, .channel = &channel_});
  Answer({5});
  Propose(coupled);
  EXPECT_EQ(Asked().history, Tokens{}) << "nothing of the last window";
}

TEST_F(CoupledTest, AsksNothingWithoutRoomBudgetOrDrafter) {
  channel_.Close();  // a request would come to nothing, and be waited for no more
  CoupledDrafting coupled(std::make_unique<FixedBudget>(4));
  coupled.BeginWindow({.window = WindowWith({90}), .channel = &channel_});
  EXPECT_EQ(Propose(coupled, 0), Runs{});
  EXPECT_EQ(Propose(coupled), Runs{}) << "the drafter is gone";
  EXPECT_EQ(Propose(coupled), Runs{});
  coupled.BeginWindow({.window = WindowWith({90})});
  EXPECT_EQ(Propose(coupled), Runs{});
}

TEST_F(CoupledTest, AdaptsItsBudgetToWhatWasAccepted) {
  CoupledDrafting adaptive(std::make_unique<AdaptiveBudget>(8), 0.5F);
  adaptive.BeginWindow({.window = WindowWith({90}), .channel = &channel_});
  const Tokens reply = {1, 2, 3, 4};
  for (const auto& [accepted, asked] :
       std::vector<std::pair<std::size_t, std::size_t>>{{4, 4}, {3, 6}, {0, 5}, {4, 4}, {4, 6}}) {
    Answer(reply);
    Propose(adaptive);
    EXPECT_EQ(Asked().count, asked);
    EXPECT_EQ(Asked().least_confidence, 0.5F);
    CandidateRuns runs;
    runs.Add(reply);
    adaptive.Verified(runs, 0, accepted);
  }
}

// PEARL: the request for the next step is on its way while the target verifies, so that here the
// test can be the draft lane on the same thread.

class PearlTest : public testing::Test {
 protected:
  void Begin() { pearl_.BeginWindow({.window = WindowWith({90}), .channel = &channel_}); }

  /// The history of the request that is on its way.
  Tokens Answer(Tokens tokens) {
    const std::optional<DraftRequest> request = channel_.Next();
    if (!request) return {-1};
    EXPECT_EQ(request->count, 4U);
    channel_.Answer({.tokens = std::move(tokens)});
    return request->history;
  }

  DraftChannel channel_{20s};
  PearlDrafting pearl_{4};
};

TEST_F(PearlTest, DraftsOnWhileTheTargetVerifies) {
  Begin();
  EXPECT_EQ(Answer({1, 2, 3, 4}), Tokens{}) << "it begins with the window";
  pearl_.Committed(Tokens{1});
  EXPECT_EQ(Propose(pearl_), (Runs{{2, 3, 4}}));
  EXPECT_EQ(Answer({5, 6, 7, 8}), (Tokens{1, 2, 3, 4})) << "as if all were right (post-verify)";
  pearl_.Committed(Tokens{2, 3, 4, 5});
  EXPECT_EQ(Propose(pearl_), (Runs{{6, 7, 8}}));
  EXPECT_EQ(Answer({9, 10, 11, 12}), (Tokens{1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST_F(PearlTest, BeginsAnewAfterACorrection) {
  Begin();
  Answer({1, 2, 3, 4});
  pearl_.Committed(Tokens{1});
  Propose(pearl_);
  Answer({5, 6, 7, 8});
  pearl_.Committed(Tokens{2, 33});
  EXPECT_EQ(Propose(pearl_), Runs{}) << "all that was drafted built on 3";
  EXPECT_EQ(Answer({41, 42, 43, 44}), (Tokens{1, 2, 33}));
  // The step alone has checked the first of them (pre-verify).
  pearl_.Committed(Tokens{41});
  EXPECT_EQ(Propose(pearl_), (Runs{{42, 43, 44}}));
  EXPECT_EQ(Answer({}), (Tokens{1, 2, 33, 41, 42, 43, 44}));
}

TEST_F(PearlTest, ATokenOfTheTargetsInPlaceOfTheDraftsFirstIsACorrection) {
  Begin();
  Answer({1, 2, 3, 4});
  pearl_.Committed(Tokens{9});
  EXPECT_EQ(Propose(pearl_), Runs{});
  EXPECT_EQ(Answer({5, 6, 7, 8}), Tokens{9});
  pearl_.Committed(Tokens{55});
  EXPECT_EQ(Propose(pearl_), Runs{}) << "so is the token of a step alone";
  EXPECT_EQ(Answer({}), (Tokens{9, 55}));
}

TEST_F(PearlTest, AReplyThatIsUsedUpLeavesNothing) {
  Begin();
  Answer({1});
  pearl_.Committed(Tokens{1});
  EXPECT_EQ(Propose(pearl_), Runs{});
  EXPECT_EQ(Answer({}), Tokens{1});
  pearl_.Committed(Tokens{2});
  EXPECT_EQ(Propose(pearl_), Runs{});
  EXPECT_EQ(Answer({3}), (Tokens{1, 2}));
}

TEST_F(PearlTest, ProposesNoMoreThanThereIsRoomFor) {
  Begin();
  Answer({1, 2, 3, 4});
  pearl_.Committed(Tokens{1});
  EXPECT_EQ(Propose(pearl_, 2), (Runs{{2, 3}}));
  EXPECT_EQ(Answer({5, 6, 7, 8}), (Tokens{1, 2, 3, 4}));
  pearl_.Committed(Tokens{2, 3, 4});
  EXPECT_EQ(Propose(pearl_), (Runs{{5, 6, 7, 8}}));
  EXPECT_EQ(Answer({}), (Tokens{1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST_F(PearlTest, TheReplyToAnEndedWindowIsNotTheNextOnes) {
  Begin();
  Answer({1, 2, 3, 4});
  pearl_.Committed(Tokens{1});
  pearl_.EndWindow();
  Begin();
  EXPECT_EQ(Answer({1, 6, 7, 8}), Tokens{});
  pearl_.Committed(Tokens{1});
  EXPECT_EQ(Propose(pearl_), (Runs{{6, 7, 8}}));
}

TEST_F(PearlTest, GoesOnAloneWithoutDrafter) {
  Begin();
  channel_.Close();
  pearl_.Committed(Tokens{1});
  EXPECT_EQ(Propose(pearl_), Runs{});
  pearl_.Committed(Tokens{2});
  EXPECT_EQ(Propose(pearl_), Runs{});
  pearl_.EndWindow();
  Begin();
  EXPECT_EQ(Propose(pearl_), Runs{});
  pearl_.EndWindow();
}

}  // namespace
}  // namespace as2d
