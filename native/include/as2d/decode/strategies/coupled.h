// Drafting and verifying in turn.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "as2d/decode/budget.h"
#include "as2d/decode/strategy.h"

namespace as2d {

/// Speculative decoding as it is usually meant (Leviathan et al. 2023, arXiv 2211.17192; Chen et
/// al. 2023, arXiv 2302.01318), at temperature 0: the drafter continues the committed prefix by as
/// many tokens as the budget says, the target verifies them, and so on in turn. One lane works
/// while the other waits.
///
/// With a least confidence and an adaptive budget it is the method `adaptive`: the drafter stops as
/// soon as the product of its own probabilities falls below that, which is the idea of SpecDec++
/// (Huang et al. 2024, arXiv 2405.19715) without its trained head.
///
/// Departs from the papers in that the two models may have different vocabularies: history and
/// draft then cross over as text (as in "universal" assisted generation).
class CoupledDrafting final : public Strategy {
 public:
  explicit CoupledDrafting(std::unique_ptr<BudgetPolicy> budget, float least_confidence = 0)
      : budget_(std::move(budget)), least_confidence_(least_confidence) {}

  void BeginWindow(const DraftSource& source) override;
  void Committed(std::span<const TokenId> tokens) override;
  void Propose(std::size_t room, CandidateRuns* runs) override;
  void Verified(const CandidateRuns& runs, std::size_t best, std::size_t accepted) override;
  void EndWindow() override {}

 private:
  const std::unique_ptr<BudgetPolicy> budget_;
  const float least_confidence_;
  DraftSource source_;
  std::vector<TokenId> committed_;
  std::vector<TokenId> candidates_;
};

}  // namespace as2d
