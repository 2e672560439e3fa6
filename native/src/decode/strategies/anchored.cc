#include "as2d/decode/strategies/anchored.h"

#include <algorithm>

namespace as2d {
namespace {

// A drafter that is behind by no more may still get ahead; one that has to go through more of what
// is committed already would say it token by token, which it can be told in one step.
constexpr std::size_t kMostBehind = 4;

}  // namespace

void AnchoredDrafting::BeginWindow(const DraftSource& source) {
  source_ = source;
  committed_.clear();
  Anchor();
}

void AnchoredDrafting::Committed(std::span<const TokenId> tokens) {
  committed_.insert(committed_.end(), tokens.begin(), tokens.end());
}

void AnchoredDrafting::Propose(std::size_t room, CandidateRuns* runs) {
  if (source_.channel == nullptr) return;
  const std::vector<TokenId> told = source_.channel->TakeTold();
  draft_.insert(draft_.end(), told.begin(), told.end());
  const std::span<const TokenId> since = std::span(committed_).subspan(anchor_);
  const std::size_t both = std::min(since.size(), draft_.size());
  if (!std::equal(since.begin(), since.begin() + static_cast<std::ptrdiff_t>(both),
                  draft_.begin()) ||
      since.size() > draft_.size() + kMostBehind) {
    counters_->realignments.Add(1);
    return Anchor();
  }
  const std::span<const TokenId> ahead = std::span(draft_).subspan(both);
  runs->Add(ahead.first(std::min({ahead.size(), room, budget_->Next()})));
}

void AnchoredDrafting::Verified(const CandidateRuns& runs, std::size_t best, std::size_t accepted) {
  budget_->Observe(runs[best].size(), accepted);
}

void AnchoredDrafting::EndWindow() {
  if (source_.channel != nullptr) source_.channel->Forget();
}

void AnchoredDrafting::Anchor() {
  anchor_ = committed_.size();
  draft_.clear();
  if (source_.channel == nullptr) return;
  const auto most = static_cast<std::size_t>(source_.window->max_tokens);
  source_.channel->Ask({.window = source_.window,
                        .encoding = source_.encoding,
                        .history = committed_,
                        // The end, too.
                        .count = most + 1 - std::min(most, anchor_),
                        .tell = true});
}

}  // namespace as2d
