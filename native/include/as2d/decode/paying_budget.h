// As many candidates as pay for the rows that they take.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>

#include "as2d/decode/budget.h"
#include "as2d/decode/step_costs.h"

namespace as2d {

/// How likely candidates are right, by their place in a run, learnt from what became of the ones
/// before. The windows of a batch share one: they have one drafter, and mostly one speaker.
///
/// It forgets at every place a little with each run, whether that reached the place or not, and
/// falls back on a hopeful guess: so places that were not tried for long are tried again.
class Acceptance {
 public:
  static constexpr std::size_t kPlaces = 64;

  /// The first `accepted` of a run of `proposed` candidates were right.
  void Observe(std::size_t proposed, std::size_t accepted);

  /// Probability that candidate `place` (from 0) is right, where all before it are.
  double Right(std::size_t place) const;

  /// How many candidates of a run of so many will probably be accepted.
  double Expected(std::size_t candidates) const;

 private:
  struct Place {
    double tried = 0;
    double right = 0;
  };
  std::array<Place, kPlaces> places_;
};

/// The number of candidates with which the step probably commits most tokens in a second, given
/// what steps cost; perhaps none. With windows beside it in the batch it is the whole step that
/// counts: another row is worth it as long as it makes the step's tokens cheaper.
class PayingBudget final : public BudgetPolicy {
 public:
  /// At most `most` candidates. `costs` must be known. With `pad` a step of an odd number of rows
  /// costs what one row more does, as in exact mode.
  PayingBudget(std::size_t most, CostCurve costs, bool pad, std::shared_ptr<Acceptance> acceptance);

  void Beside(std::span<const std::size_t> others) override;
  /// When nothing has paid for a while, what would pay best: without candidates nothing is learnt.
  std::size_t Next() override;
  void Observe(std::size_t proposed, std::size_t accepted) override;

 private:
  double Rate(double tokens, std::size_t candidates) const;

  const std::size_t most_;
  const CostCurve costs_;
  const bool pad_;
  const std::shared_ptr<Acceptance> acceptance_;
  std::size_t other_rows_ = 0;  // of the step ...
  double other_tokens_ = 0;     // ... and what they probably commit
  int without_ = 0;             // answers "none" since the last run that was verified
};

}  // namespace as2d
