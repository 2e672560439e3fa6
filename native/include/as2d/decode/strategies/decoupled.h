// Target-decoupled drafting.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "as2d/decode/aligner.h"
#include "as2d/decode/budget.h"
#include "as2d/decode/strategy.h"
#include "as2d/text/token_keys.h"
#include "as2d/trace/counters.h"

namespace as2d {

/// Target-decoupled drafting (AS²D, arXiv 2609.37617): the drafter follows its own history and
/// publishes; the target looks at what is there, places its committed prefix in it, and verifies
/// what comes after. It never waits, and tells the drafter nothing.
class DecoupledDrafting final : public Strategy {
 public:
  /// With `places` > 1 it proposes a run from each of that many places where the committed prefix
  /// could end, the likeliest first. Others may add runs after them. `counters` must outlive this.
  DecoupledDrafting(std::shared_ptr<const TokenKeys> keys, std::unique_ptr<BudgetPolicy> budget,
                    Counters* counters, std::size_t places = 1);

  void BeginWindow(const DraftSource& source) override;
  void Committed(std::span<const TokenId> tokens) override;
  void Beside(std::span<const std::size_t> others) override { budget_->Beside(others); }
  void Propose(std::size_t room, CandidateRuns* runs) override;
  void Verified(const CandidateRuns& runs, std::size_t best, std::size_t accepted) override;
  void EndWindow() override;

 private:
  const std::shared_ptr<const TokenKeys> keys_;
  Aligner aligner_;
  const std::unique_ptr<BudgetPolicy> budget_;
  Counters* const counters_;
  const std::size_t places_;
  const DraftStream* stream_ = nullptr;
  std::size_t read_ = 0;                                       // draft tokens given to the aligner
  std::array<std::size_t, CandidateRuns::kMost> positions_{};  // where the last runs begin ...
  std::size_t placed_ = 0;                                     // ... and how many there are
  std::size_t expected_ = 0;    // where the position would be had every token been the drafter's
  std::vector<bool> verified_;  // of the draft tokens, those that were ever candidates
};

}  // namespace as2d
