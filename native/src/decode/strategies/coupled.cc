#include "as2d/decode/strategies/coupled.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace as2d {

void CoupledDrafting::BeginWindow(const DraftSource& source) {
  source_ = source;
  committed_.clear();
}

void CoupledDrafting::Committed(std::span<const TokenId> tokens) {
  committed_.insert(committed_.end(), tokens.begin(), tokens.end());
}

void CoupledDrafting::Propose(std::size_t room, CandidateRuns* runs) {
  const std::size_t count = std::min(room, budget_->Next());
  if (source_.channel == nullptr || count == 0) return;
  source_.channel->Ask({.window = source_.window,
                        .encoding = source_.encoding,
                        .history = committed_,
                        .count = count,
                        .least_confidence = least_confidence_});
  std::optional<DraftReply> reply = source_.channel->Wait();
  if (!reply) {
    source_.channel = nullptr;  // the drafter is gone: alone from here on
    return;
  }
  candidates_ = std::move(reply->tokens);
  runs->Add(candidates_);
}

void CoupledDrafting::Verified(const CandidateRuns& runs, std::size_t best, std::size_t accepted) {
  budget_->Observe(runs[best].size(), accepted);
}

}  // namespace as2d
