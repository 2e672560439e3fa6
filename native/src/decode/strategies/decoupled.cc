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
  read_ = expected_ = placed_ = 0;
  verified_.clear();
}

void DecoupledDrafting::Committed(std::span<const TokenId> tokens) {
  for (const TokenId token : tokens) aligner_.PushCommitted(token);
  expected_ += tokens.size();
}

void DecoupledDrafting::Propose(std::size_t room, CandidateRuns* runs) {
  placed_ = 0;
  if (stream_ == nullptr) return;
  const std::span<const TokenId> published = stream_->Read();
  for (; read_ < published.size(); ++read_) aligner_.PushDraft(published[read_]);
  const std::optional<std::size_t> position = aligner_.Position();
  // Not asked while there is nothing to propose: a policy counts what it says.
  if (!position || aligner_.Candidates(*position, 1).empty()) return;
  const std::size_t budget = std::min(room, budget_->Next());
  if (budget == 0) return;
  std::array<TokenId, CandidateRuns::kMost> taken{};
  for (std::optional<std::size_t> place = position; place && placed_ < places_;
       place = aligner_.OtherPosition(std::span(taken).first(placed_))) {
    const std::span<const TokenId> run = aligner_.Candidates(*place, budget);
    if (run.empty()) return;
    runs->Add(run);
    positions_[placed_] = *place;
    taken[placed_++] = run.front();
  }
}

void DecoupledDrafting::Verified(const CandidateRuns& runs, std::size_t best,
                                 std::size_t accepted) {
  verified_.resize(read_);
  for (std::size_t run = 0; run < placed_; ++run) {
    std::fill_n(verified_.begin() + static_cast<std::ptrdiff_t>(positions_[run]), runs[run].size(),
                true);
  }
  if (best >= placed_) return;  // the target followed another's run
  const std::size_t position = positions_[best];
  budget_->Observe(runs[best].size(), accepted);
  if (position != expected_) counters_->realignments.Add(1);
  expected_ = position;
  counters_->lead_total.Add(static_cast<std::int64_t>(read_ - position));
}

void DecoupledDrafting::EndWindow() {
  if (stream_ == nullptr) return;
  counters_->stale_drafts.Add(static_cast<std::int64_t>(stream_->Read().size()) -
                              std::ranges::count(verified_, true));
  stream_ = nullptr;
}

}  // namespace as2d
