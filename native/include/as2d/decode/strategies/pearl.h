// Drafting and verifying at once, in lock-step.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "as2d/decode/strategy.h"

namespace as2d {

/// Parallel speculative decoding with adaptive draft length (PEARL, Liu et al. 2024, arXiv
/// 2408.11850). While the target verifies the candidates, the drafter goes on as if all of them
/// were right (post-verify); where they were not, the drafter begins anew after the correction
/// while the target takes a step alone, which checks the first of the new tokens (pre-verify). Both
/// lanes work at once, and each round lasts as long as the slower of them.
///
/// Departs from the paper in that the target's own token after accepted candidates is always
/// committed, and so costs the first token of the drafter's continuation; and in that the drafter
/// begins with the window, while the target still encodes.
class PearlDrafting final : public Strategy {
 public:
  explicit PearlDrafting(std::size_t budget) : budget_(budget) {}

  void BeginWindow(const DraftSource& source) override;
  void Committed(std::span<const TokenId> tokens) override;
  void Propose(std::size_t room, CandidateRuns* runs) override;
  void Verified(const CandidateRuns&, std::size_t, std::size_t) override {}
  void EndWindow() override {}

 private:
  void Ask();
  std::vector<TokenId> TakeReply();

  const std::size_t budget_;
  DraftSource source_;
  bool asked_ = false;  // a reply is still to come
  std::vector<TokenId> committed_;
  std::vector<TokenId> pending_;  // assumed in the request, after what was committed then
  std::size_t committed_then_ = 0;
};

}  // namespace as2d
