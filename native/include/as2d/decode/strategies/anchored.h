// A drafter that is put right whenever it has lost the target.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "as2d/decode/budget.h"
#include "as2d/decode/strategy.h"
#include "as2d/trace/counters.h"

namespace as2d {

/// Re-anchored drafting. The drafter follows its own history and publishes, and the target takes
/// what is ready and never waits, as in DecoupledDrafting; but where the two texts differ, the
/// drafter is made to go on from the committed prefix. It is for texts that nothing keeps together:
/// of one audio two texts agree again after a mistake, two free answers do not.
class AnchoredDrafting final : public Strategy {
 public:
  /// `counters` must outlive this.
  AnchoredDrafting(std::unique_ptr<BudgetPolicy> budget, Counters* counters)
      : budget_(std::move(budget)), counters_(counters) {}

  void BeginWindow(const DraftSource& source) override;
  void Committed(std::span<const TokenId> tokens) override;
  void Propose(std::size_t room, CandidateRuns* runs) override;
  void Verified(const CandidateRuns& runs, std::size_t best, std::size_t accepted) override;
  void EndWindow() override;

 private:
  void Anchor();

  const std::unique_ptr<BudgetPolicy> budget_;
  Counters* const counters_;
  DraftSource source_;
  std::vector<TokenId> committed_;
  std::size_t anchor_ = 0;      // so much was committed when the drafter was last put right
  std::vector<TokenId> draft_;  // what it said after that
};

}  // namespace as2d
