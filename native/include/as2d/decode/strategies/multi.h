// Several candidate runs in one batch.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "as2d/decode/strategies/decoupled.h"
#include "as2d/decode/strategies/lookup.h"
#include "as2d/decode/strategy.h"

namespace as2d {

/// Several candidate runs, verified in one batch; the run that holds longest wins (SpecInfer, Miao
/// et al. 2023, arXiv 2305.09781; multi-candidate speculative decoding, Yang et al. 2024, arXiv
/// 2401.06706).
///
/// Departs from them in where the runs come from. There a drafter that is re-fed with the prefix
/// branches by its own probabilities. Here the drafter is decoupled and says one text, and what is
/// uncertain is the place in it: the runs begin at the likeliest places (see Aligner), and one more
/// comes from looking up the text so far.
class MultiDrafting final : public Strategy {
 public:
  /// `counters` must outlive this. Every run has at most `budget` tokens.
  MultiDrafting(std::shared_ptr<const TokenKeys> keys, std::size_t budget, Counters* counters);

  void BeginWindow(const DraftSource& source) override;
  void Committed(std::span<const TokenId> tokens) override;
  void Propose(std::size_t room, CandidateRuns* runs) override;
  void Verified(const CandidateRuns& runs, std::size_t best, std::size_t accepted) override;
  void EndWindow() override;

 private:
  DecoupledDrafting drafted_;
  LookupDrafting known_;
};

}  // namespace as2d
