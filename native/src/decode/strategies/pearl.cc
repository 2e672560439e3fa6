#include "as2d/decode/strategies/pearl.h"

#include <algorithm>
#include <utility>

namespace as2d {

void PearlDrafting::BeginWindow(const DraftSource& source) {
  source_ = source;
  committed_.clear();
  pending_.clear();
  Ask();
}

void PearlDrafting::Committed(std::span<const TokenId> tokens) {
  committed_.insert(committed_.end(), tokens.begin(), tokens.end());
}

void PearlDrafting::Propose(std::size_t room, CandidateRuns* runs) {
  // What was committed since the request must be what the drafter built on and said.
  std::vector<TokenId> chain = std::move(pending_);
  const std::vector<TokenId> reply = TakeReply();
  chain.insert(chain.end(), reply.begin(), reply.end());
  const std::span<const TokenId> since = std::span(committed_).subspan(committed_then_);
  pending_.clear();
  if (since.size() < chain.size() && std::equal(since.begin(), since.end(), chain.begin())) {
    pending_.assign(chain.begin() + static_cast<std::ptrdiff_t>(since.size()), chain.end());
  }
  Ask();
  runs->Add(std::span(pending_).first(std::min({pending_.size(), room, budget_})));
}

void PearlDrafting::Ask() {
  TakeReply();  // to what was asked in vain when the last window ended
  committed_then_ = committed_.size();
  if (source_.channel == nullptr) return;
  std::vector<TokenId> history = committed_;
  history.insert(history.end(), pending_.begin(), pending_.end());
  source_.channel->Ask({.window = source_.window,
                        .encoding = source_.encoding,
                        .history = std::move(history),
                        .count = budget_});
  asked_ = true;
}

// Waits for it; nothing when there is none.
std::vector<TokenId> PearlDrafting::TakeReply() {
  if (!std::exchange(asked_, false)) return {};
  std::optional<DraftReply> reply = source_.channel->Wait();
  if (reply) return std::move(reply->tokens);
  source_.channel = nullptr;  // the drafter is gone: alone from here on
  return {};
}

}  // namespace as2d
