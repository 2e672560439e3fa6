#include "as2d/decode/paying_budget.h"

#include <algorithm>
#include <utility>

namespace as2d {
namespace {

// What is guessed of a place, and the number of trials that the guess counts for. A guess too high
// costs a few rows until it is corrected; one too low is never corrected.
constexpr double kHope = 0.85;
constexpr double kHopeTrials = 2;

// Some twenty runs are remembered: less than a window's, so that a change of speaker is soon seen.
constexpr double kMemory = 0.95;

// Steps without candidates before some are tried: one dearer step in so many is not felt.
constexpr int kPatience = 24;

}  // namespace

void Acceptance::Observe(std::size_t proposed, std::size_t accepted) {
  for (Place& place : places_) {
    place.tried *= kMemory;
    place.right *= kMemory;
  }
  // What came after a wrong one says nothing: it continued something else.
  const std::size_t tried = std::min({proposed, accepted + 1, kPlaces});
  for (std::size_t i = 0; i < tried; ++i) {
    places_[i].tried += 1;
    places_[i].right += i < accepted ? 1 : 0;
  }
}

double Acceptance::Right(std::size_t place) const {
  const Place& known = places_[std::min(place, kPlaces - 1)];
  return (known.right + kHope * kHopeTrials) / (known.tried + kHopeTrials);
}

double Acceptance::Expected(std::size_t candidates) const {
  double expected = 0;
  double all_right = 1;
  for (std::size_t i = 0; i < candidates; ++i) expected += all_right *= Right(i);
  return expected;
}

PayingBudget::PayingBudget(std::size_t most, CostCurve costs, bool pad,
                           std::shared_ptr<Acceptance> acceptance)
    : most_(most), costs_(std::move(costs)), pad_(pad), acceptance_(std::move(acceptance)) {}

void PayingBudget::Beside(std::span<const std::size_t> others) {
  other_rows_ = others.size();
  other_tokens_ = static_cast<double>(others.size());
  for (const std::size_t candidates : others) {
    other_rows_ += candidates;
    other_tokens_ += acceptance_->Expected(candidates);
  }
}

double PayingBudget::Rate(double tokens, std::size_t candidates) const {
  const std::size_t rows = other_rows_ + 1 + candidates;
  return (other_tokens_ + 1 + tokens) / costs_.Seconds(pad_ ? rows + rows % 2 : rows);
}

std::size_t PayingBudget::Next() {
  std::size_t best = 0;
  double best_rate = without_ < kPatience ? Rate(0, 0) : 0;
  double expected = 0;
  double all_right = 1;
  for (std::size_t candidates = 1; candidates <= most_; ++candidates) {
    expected += all_right *= acceptance_->Right(candidates - 1);
    const double rate = Rate(expected, candidates);
    if (rate > best_rate) {
      best = candidates;
      best_rate = rate;
    }
  }
  if (best == 0) ++without_;
  return best;
}

void PayingBudget::Observe(std::size_t proposed, std::size_t accepted) {
  without_ = 0;
  acceptance_->Observe(proposed, accepted);
}

}  // namespace as2d
