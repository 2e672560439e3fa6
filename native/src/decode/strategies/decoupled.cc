#include "as2d/decode/strategies/decoupled.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace as2d {

DecoupledDrafting::DecoupledDrafting(std::shared_ptr<const TokenKeys> keys,
                                     std::unique_ptr<BudgetPolicy> budget, Counters* counters,
                                     std::size_t places)
    : keys_(std::move(keys)),
      aligner_(*keys_),
      budget_(std::move(budget)),
      counters_(counters),
      places_(std::clamp<std::size_t>(places, 1, CandidateRuns::kMost)) {}

void DecoupledDrafting::BeginWindow(const DraftSource& source) {
  aligner_.Reset();
  stream_ = source.stream;
  read_ = proposed_ = expected_ = 0;
  used_ = 0;
}

void DecoupledDrafting::Committed(std::span<const TokenId> tokens) {
  for (const TokenId token : tokens) aligner_.PushCommitted(token);
  expected_ += tokens.size();
}

void DecoupledDrafting::Propose(std::size_t room, CandidateRuns* runs) {
  if (stream_ == nullptr) return;
  const std::span<const TokenId> published = stream_->Read();
  for (; read_ < published.size(); ++read_) aligner_.PushDraft(published[read_]);
  const std::size_t budget = std::min(room, budget_->Next());
  const std::optional<std::size_t> position = aligner_.Position();
  if (!position || budget == 0) return;
  positions_[0] = *position;
  runs->Add(aligner_.Candidates(*position, budget));
  std::array<TokenId, CandidateRuns::kMost> taken{};
  while (!runs->empty() && runs->size() < places_) {
    taken[runs->size() - 1] = (*runs)[runs->size() - 1].front();
    const std::optional<std::size_t> other =
        aligner_.OtherPosition(std::span(taken).first(runs->size()));
    if (!other) return;
    positions_[runs->size()] = *other;
    runs->Add(aligner_.Candidates(*other, budget));
  }
}

void DecoupledDrafting::Verified(const CandidateRuns& runs, std::size_t best,
                                 std::size_t accepted) {
  const std::size_t proposed = runs[best].size();
  const std::size_t position = positions_[best];
  budget_->Observe(proposed, accepted);
  if (position != expected_) counters_->realignments.Add(1);
  expected_ = position;
  counters_->lead_total.Add(static_cast<std::int64_t>(read_ - position));
  const std::size_t end = position + proposed;
  if (end > proposed_) {
    used_ += static_cast<std::int64_t>(end - std::max(proposed_, position));
    proposed_ = end;
  }
}

void DecoupledDrafting::EndWindow() {
  if (stream_ == nullptr) return;
  counters_->stale_drafts.Add(static_cast<std::int64_t>(stream_->Read().size()) - used_);
  stream_ = nullptr;
}

}  // namespace as2d
