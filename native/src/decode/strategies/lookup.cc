#include "as2d/decode/strategies/lookup.h"

#include <algorithm>

namespace as2d {
namespace {

// A single token comes again by chance; two in a row mostly mean that the text repeats.
constexpr std::size_t kShortest = 2;
constexpr std::size_t kLongest = 6;
// What is further back is forgotten, so that a long recording does not slow down: some minutes.
constexpr std::size_t kMostKnown = 4096;

// Tokens that [0, end) and [0, other) have in common at their ends, at most kLongest.
std::size_t CommonEnd(std::span<const TokenId> text, std::size_t end, std::size_t other) {
  std::size_t length = 0;
  while (length < kLongest && length < other &&
         text[end - 1 - length] == text[other - 1 - length]) {
    ++length;
  }
  return length;
}

std::size_t KindOf(std::size_t length) { return length < 3 ? 0 : length < kLongest ? 1 : 2; }

}  // namespace

LookupDrafting::LookupDrafting(const std::function<std::unique_ptr<BudgetPolicy>()>& make_budget) {
  for (std::unique_ptr<BudgetPolicy>& budget : budgets_) budget = make_budget();
}

void LookupDrafting::Beside(std::span<const std::size_t> others) {
  for (const std::unique_ptr<BudgetPolicy>& budget : budgets_) budget->Beside(others);
}

void LookupDrafting::BeginWindow(const DraftSource& source) {
  if (known_.size() > kMostKnown) {
    known_.erase(known_.begin(), known_.end() - static_cast<std::ptrdiff_t>(kMostKnown));
  }
  for (const auto* const text : {&source.window->source, &source.window->prompt}) {
    known_.insert(known_.end(), text->begin(), text->end());
  }
}

void LookupDrafting::Committed(std::span<const TokenId> tokens) {
  known_.insert(known_.end(), tokens.begin(), tokens.end());
}

void LookupDrafting::Propose(std::size_t room, CandidateRuns* runs) {
  const std::size_t end = known_.size();
  std::size_t longest = kShortest - 1;
  std::size_t place = 0;
  // The latest of the longest.
  for (std::size_t other = end; --other > 0 && longest < kLongest;) {
    const std::size_t length = CommonEnd(known_, end, other);
    if (length > longest) {
      longest = length;
      place = other;
    }
  }
  if (place == 0) return;
  kind_ = KindOf(longest);
  const std::size_t count = std::min({room, budgets_[kind_]->Next(), end - place});
  const auto first = known_.begin() + static_cast<std::ptrdiff_t>(place);
  // Copied: the text grows while the candidates are in use.
  candidates_.assign(first, first + static_cast<std::ptrdiff_t>(count));
  runs->Add(candidates_);
}

void LookupDrafting::Verified(const CandidateRuns& runs, std::size_t best, std::size_t accepted) {
  budgets_[kind_]->Observe(runs[best].size(), accepted);
}

}  // namespace as2d
