#include "as2d/decode/paying_budget.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "as2d/decode/step_costs.h"
#include "as2d/error.h"

namespace as2d {
namespace {

using Steps = std::map<int, double>;

// What steps cost.

TEST(CostCurveTest, LinesBetweenWhatIsKnown) {
  const CostCurve curve(Steps{{2, 1.0}, {4, 2.0}, {8, 6.0}});
  EXPECT_DOUBLE_EQ(curve.Seconds(1), 1.0);
  EXPECT_DOUBLE_EQ(curve.Seconds(2), 1.0);
  EXPECT_DOUBLE_EQ(curve.Seconds(3), 1.5);
  EXPECT_DOUBLE_EQ(curve.Seconds(4), 2.0);
  EXPECT_DOUBLE_EQ(curve.Seconds(7), 5.0);
  EXPECT_DOUBLE_EQ(curve.Seconds(8), 6.0);
  EXPECT_DOUBLE_EQ(curve.Seconds(10), 8.0);
}

TEST(CostCurveTest, NeverFallsBeyondWhatIsKnown) {
  const CostCurve noisy(Steps{{8, 2.0}, {16, 1.0}});
  EXPECT_DOUBLE_EQ(noisy.Seconds(12), 1.5);
  EXPECT_DOUBLE_EQ(noisy.Seconds(32), 1.0);
  const CostCurve flat(Steps{{4, 3.0}});
  EXPECT_DOUBLE_EQ(flat.Seconds(1), 3.0);
  EXPECT_DOUBLE_EQ(flat.Seconds(100), 3.0);
}

TEST(CostCurveTest, RefusesWhatCannotBe) {
  EXPECT_FALSE(CostCurve().known());
  EXPECT_FALSE(CostCurve(Steps{}).known());
  for (const auto& [rows, seconds] : Steps{{0, 1.0}, {1, 0.0}, {2, -1.0}}) {
    EXPECT_THROW(CostCurve(Steps{{rows, seconds}}), Error) << rows;
  }
  EXPECT_THROW(CostCurve(Steps{{1, std::numeric_limits<double>::quiet_NaN()}}), Error);
}

// What becomes of candidates.

TEST(AcceptanceTest, LearnsEachPlaceOfARun) {
  Acceptance acceptance;
  for (int i = 0; i < 100; ++i) acceptance.Observe(4, 2);
  EXPECT_GT(acceptance.Right(0), 0.95);
  EXPECT_GT(acceptance.Right(1), 0.95);
  EXPECT_LT(acceptance.Right(2), 0.15);
  EXPECT_GT(acceptance.Right(3), 0.8) << "what comes after a wrong one says nothing";
  EXPECT_NEAR(acceptance.Expected(8), 2, 0.4);
  EXPECT_DOUBLE_EQ(acceptance.Expected(0), 0);
}

TEST(AcceptanceTest, ForgetsPlacesThatAreTriedNoMore) {
  Acceptance acceptance;
  for (int i = 0; i < 50; ++i) acceptance.Observe(8, 3);
  ASSERT_LT(acceptance.Right(3), 0.3);
  for (int i = 0; i < 100; ++i) acceptance.Observe(3, 3);
  EXPECT_GT(acceptance.Right(3), 0.8);
}

TEST(AcceptanceTest, ALongerRunThanItKnowsPlacesForIsTakenAsFarAsItGoes) {
  Acceptance acceptance;
  for (int i = 0; i < 50; ++i) acceptance.Observe(1000, 1000);
  EXPECT_GT(acceptance.Right(Acceptance::kPlaces - 1), 0.9);
  EXPECT_GT(acceptance.Right(1000), 0.9);
}

// How many are proposed.

class PayingBudgetTest : public testing::Test {
 protected:
  PayingBudget Make(const CostCurve& costs, std::size_t most = 15, bool pad = false) {
    return PayingBudget(most, costs, pad, acceptance_);
  }

  /// A row more costs a tenth of the first one.
  const CostCurve cheap_rows_{Steps{{1, 1.0}, {11, 2.0}}};
  /// As much as a step of its own.
  const CostCurve dear_rows_{Steps{{1, 1.0}, {11, 11.0}}};
  const std::shared_ptr<Acceptance> acceptance_ = std::make_shared<Acceptance>();
};

TEST_F(PayingBudgetTest, TakesAllWhereTheyAreRightAndCheap) {
  PayingBudget budget = Make(cheap_rows_);
  for (int i = 0; i < 60; ++i) budget.Observe(budget.Next(), budget.Next());
  EXPECT_EQ(budget.Next(), 15U);
}

TEST_F(PayingBudgetTest, GoesAsFarAsTheyAreRight) {
  PayingBudget budget = Make(cheap_rows_);
  for (int i = 0; i < 60; ++i) {
    const std::size_t next = budget.Next();
    budget.Observe(next, std::min<std::size_t>(next, 5));
  }
  const std::size_t next = budget.Next();
  EXPECT_GE(next, 4U);
  EXPECT_LE(next, 7U);
}

TEST_F(PayingBudgetTest, ProposesNoneWhereTheyDoNotPayButTriesNowAndThen) {
  PayingBudget budget = Make(dear_rows_);
  int tried = 0;
  for (int i = 0; i < 500; ++i) {
    const std::size_t next = budget.Next();
    if (next == 0) continue;
    ++tried;
    budget.Observe(next, 0);
  }
  EXPECT_GT(tried, 10);
  EXPECT_LT(tried, 30);
}

TEST_F(PayingBudgetTest, RecoversWhenTheDrafterDoes) {
  PayingBudget budget = Make(cheap_rows_);
  for (int i = 0; i < 200; ++i) budget.Observe(8, 0);
  EXPECT_EQ(budget.Next(), 0U);
  int steps = 0;
  for (; steps < 400 && budget.Next() < 12; ++steps) {
    if (const std::size_t next = budget.Next(); next > 0) budget.Observe(next, next);
  }
  EXPECT_LT(steps, 400);
}

TEST_F(PayingBudgetTest, AnEvenNumberOfRowsWhereAnOddOneIsPadded) {
  PayingBudget budget = Make(cheap_rows_, 14, true);
  std::set<std::size_t> padded;
  for (std::size_t right = 0; right < 14; ++right) {
    for (int i = 0; i < 60; ++i) budget.Observe(14, right);
    const std::size_t next = budget.Next();
    if (next != 0 && next != 14 && next % 2 == 0) padded.insert(next);
  }
  EXPECT_TRUE(padded.empty()) << *padded.begin();
}

TEST_F(PayingBudgetTest, BesideOthersEachRowIsWeighedAgainstTheWholeStep) {
  // Up to eight rows cost the same, then each costs as much as a step of eight.
  const CostCurve stairs(Steps{{1, 1.0}, {8, 1.0}, {16, 9.0}});
  PayingBudget budget = Make(stairs);
  EXPECT_EQ(budget.Next(), 7U);
  const std::vector<std::size_t> others = {3, 0};
  budget.Beside(others);
  EXPECT_EQ(budget.Next(), 2U) << "five rows are taken already";
  budget.Beside({});
  EXPECT_EQ(budget.Next(), 7U);
}

TEST_F(PayingBudgetTest, NeverMoreThanTheMost) {
  EXPECT_EQ(Make(cheap_rows_, 0).Next(), 0U);
  EXPECT_EQ(Make(cheap_rows_, 1).Next(), 1U);
}

TEST_F(PayingBudgetTest, WindowsOfABatchLearnFromEachOther) {
  PayingBudget one = Make(cheap_rows_);
  PayingBudget other = Make(cheap_rows_);
  for (int i = 0; i < 200; ++i) one.Observe(8, 0);
  EXPECT_EQ(other.Next(), 0U);
}

}  // namespace
}  // namespace as2d
