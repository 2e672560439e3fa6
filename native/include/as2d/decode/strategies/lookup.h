// Candidates from text that is known already, without a drafter.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "as2d/decode/strategy.h"

namespace as2d {

/// Prompt look-up decoding (Saxena 2023; also Yang et al. 2023, arXiv 2304.04487): the last few
/// tokens are looked for in the text so far, and what came after them then is proposed now.
///
/// Departs from them in what is searched: speech has no source text, so it is the window's prompt
/// and all that was committed in this and the windows before it.
class LookupDrafting final : public Strategy {
 public:
  explicit LookupDrafting(std::size_t budget) : budget_(budget) {}

  void BeginWindow(const DraftSource& source) override;
  void Committed(std::span<const TokenId> tokens) override;
  void Propose(std::size_t room, CandidateRuns* runs) override;
  void Verified(const CandidateRuns&, std::size_t, std::size_t) override {}
  void EndWindow() override {}

 private:
  const std::size_t budget_;
  std::vector<TokenId> known_;
  std::vector<TokenId> candidates_;
};

}  // namespace as2d
