// How many candidates go into one verify step.
#pragma once

#include <cstddef>

namespace as2d {

/// Decides the budget of each step; owned and called by the target lane.
class BudgetPolicy {
 public:
  virtual ~BudgetPolicy() = default;
  /// Candidates that the next step may take; 0 lets the target go alone.
  virtual std::size_t Next() = 0;
  /// What became of the last step that had candidates.
  virtual void Observe(std::size_t proposed, std::size_t accepted) = 0;
};

/// Always the same budget.
class FixedBudget final : public BudgetPolicy {
 public:
  explicit FixedBudget(std::size_t budget) : budget_(budget) {}
  std::size_t Next() override { return budget_; }
  void Observe(std::size_t, std::size_t) override {}

 private:
  std::size_t budget_;
};

}  // namespace as2d
