#include "as2d/decode/strategies/multi.h"

#include <algorithm>
#include <utility>

namespace as2d {
namespace {

constexpr std::size_t kPlaces = 2;

}  // namespace

MultiDrafting::MultiDrafting(std::shared_ptr<const TokenKeys> keys, std::size_t budget,
                             Counters* counters)
    : drafted_(std::move(keys), std::make_unique<FixedBudget>(budget), counters, kPlaces),
      known_(budget) {}

void MultiDrafting::BeginWindow(const DraftSource& source) {
  drafted_.BeginWindow(source);
  known_.BeginWindow(source);
}

void MultiDrafting::Committed(std::span<const TokenId> tokens) {
  drafted_.Committed(tokens);
  known_.Committed(tokens);
}

void MultiDrafting::Propose(std::size_t room, CandidateRuns* runs) {
  drafted_.Propose(room, runs);
  CandidateRuns known;
  known_.Propose(room, &known);
  if (known.empty()) return;
  // Two runs that begin alike would be verified twice for little.
  const bool alike = std::ranges::any_of(
      runs->runs(), [&](const auto& run) { return run.front() == known[0].front(); });
  if (!alike) runs->Add(known[0]);
}

void MultiDrafting::Verified(const CandidateRuns& runs, std::size_t best, std::size_t accepted) {
  drafted_.Verified(runs, best, accepted);
}

void MultiDrafting::EndWindow() {
  drafted_.EndWindow();
  known_.EndWindow();
}

}  // namespace as2d
