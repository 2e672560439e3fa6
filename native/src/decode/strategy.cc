#include "as2d/decode/strategy.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace as2d {

DecoupledDrafting::DecoupledDrafting(std::shared_ptr<const TokenKeys> keys,
                                     std::unique_ptr<BudgetPolicy> budget, Counters* counters)
    : keys_(std::move(keys)), aligner_(*keys_), budget_(std::move(budget)), counters_(counters) {}

void DecoupledDrafting::BeginWindow(const DraftStream* stream) {
  aligner_.Reset();
  stream_ = stream;
  read_ = proposed_ = expected_ = 0;
  used_ = 0;
}

void DecoupledDrafting::Committed(std::span<const TokenId> tokens) {
  for (const TokenId token : tokens) aligner_.PushCommitted(token);
  expected_ += tokens.size();
}

std::span<const TokenId> DecoupledDrafting::Candidates(std::size_t room) {
  if (stream_ == nullptr) return {};
  const std::span<const TokenId> published = stream_->Read();
  for (; read_ < published.size(); ++read_) aligner_.PushDraft(published[read_]);
  const std::size_t budget = std::min(room, budget_->Next());
  const std::optional<std::size_t> position = aligner_.Position();
  if (!position || budget == 0) return {};
  position_ = *position;
  return aligner_.Candidates(budget);
}

void DecoupledDrafting::Verified(std::size_t proposed, std::size_t accepted) {
  budget_->Observe(proposed, accepted);
  if (position_ != expected_) counters_->realignments.Add(1);
  expected_ = position_;
  counters_->lead_total.Add(static_cast<std::int64_t>(read_ - position_));
  const std::size_t end = position_ + proposed;
  if (end > proposed_) {
    used_ += static_cast<std::int64_t>(end - std::max(proposed_, position_));
    proposed_ = end;
  }
}

void DecoupledDrafting::EndWindow() {
  if (stream_ == nullptr) return;
  counters_->stale_drafts.Add(static_cast<std::int64_t>(stream_->Read().size()) - used_);
  stream_ = nullptr;
}

}  // namespace as2d
