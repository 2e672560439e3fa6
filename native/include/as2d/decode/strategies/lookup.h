// Candidates from text that is known already, without a drafter.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "as2d/decode/budget.h"
#include "as2d/decode/strategy.h"

namespace as2d {

/// Prompt look-up decoding (Saxena 2023; also Yang et al. 2023, arXiv 2304.04487): the last few
/// tokens are looked for in the text so far, and what came after them then is proposed now.
///
/// Departs from them in what is searched: the window's prompt and what it names as its source, and
/// all that was committed in this and the windows before it; and in how much is proposed, which
/// depends on how often look-ups by so many tokens were right.
class LookupDrafting final : public Strategy {
 public:
  /// Every run has at most `budget` tokens.
  explicit LookupDrafting(std::size_t budget)
      : LookupDrafting([budget] { return std::make_unique<FixedBudget>(budget); }) {}
  /// With a policy for each kind of look-up: what was found by two tokens is less sure than what
  /// was found by many.
  explicit LookupDrafting(const std::function<std::unique_ptr<BudgetPolicy>()>& make_budget);

  void BeginWindow(const DraftSource& source) override;
  void Committed(std::span<const TokenId> tokens) override;
  void Beside(std::span<const std::size_t> others) override;
  void Propose(std::size_t room, CandidateRuns* runs) override;
  void Verified(const CandidateRuns& runs, std::size_t best, std::size_t accepted) override;
  void EndWindow() override {}

 private:
  std::array<std::unique_ptr<BudgetPolicy>, 3> budgets_;  // from the least sure kind on
  std::size_t kind_ = 0;                                  // of the last run
  std::vector<TokenId> known_;
  std::vector<TokenId> candidates_;
};

}  // namespace as2d
