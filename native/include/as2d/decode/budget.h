// How many candidates go into one verify step.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace as2d {

/// Decides the budget of each step; owned and called by the target lane.
class BudgetPolicy {
 public:
  virtual ~BudgetPolicy() = default;
  /// The candidates of each other window in the next step, as far as they are known. Comes before
  /// Next where there is a batch.
  virtual void Beside(std::span<const std::size_t>) {}
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

/// Two more after a step whose candidates were all accepted, one less after any other, between 1
/// and `most`: the heuristic of assisted generation in the `transformers` library (Gante 2023).
class AdaptiveBudget final : public BudgetPolicy {
 public:
  /// Begins with half of `most`; with 0 the target goes alone.
  explicit AdaptiveBudget(std::size_t most)
      : most_(most), budget_(std::max<std::size_t>(1, most / 2)) {}
  std::size_t Next() override { return std::min(most_, budget_); }
  void Observe(std::size_t proposed, std::size_t accepted) override {
    budget_ =
        accepted == proposed ? std::min(most_, budget_ + 2) : std::max<std::size_t>(2, budget_) - 1;
  }

 private:
  const std::size_t most_;
  std::size_t budget_;
};

}  // namespace as2d
