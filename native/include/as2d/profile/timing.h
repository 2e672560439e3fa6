// Measures what the pieces of work of a run cost, one by one: what a plan is made of.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "as2d/decode/models.h"
#include "as2d/decode/window.h"
#include "as2d/text/retokenizer.h"

namespace as2d {

/// A measurement takes no more samples once this is past, but one of each kind in any case.
using Deadline = std::chrono::steady_clock::time_point;

/// Seconds of each of `repeats` passes of the encoder over so many seconds of audio. A pass before
/// them warms up; it is told only where there is no time for another. Throws Error, Cancelled.
std::vector<double> TimeEncode(TargetModel& target, double seconds_of_audio, std::size_t repeats,
                               Deadline deadline);

/// Faint noise, 16 kHz mono: what a model says of it has no meaning, but no number in it is odd.
std::vector<float> Noise(double seconds);

/// Times forwards over rows of one window, in the middle of its context.
class StepTimer {
 public:
  /// Encodes `samples`, so that the caches hold what they do in a run. With `pad` an odd number of
  /// rows gets one more, as a run in exact mode does it. The target must outlive this. Throws
  /// Error, Cancelled.
  StepTimer(TargetModel& target, std::span<const float> samples, bool pad);

  /// Seconds of `repeats` forwards for each of the numbers of rows, in turn, so that what disturbs
  /// the machine disturbs all of them. A forward of each before that warms up. Throws Error for a
  /// number that does not fit the context; Cancelled.
  std::vector<std::vector<double>> Time(std::span<const int> rows, std::size_t repeats,
                                        Deadline deadline);

 private:
  double Forward(int rows);
  void Require(int rows) const;

  TargetModel& target_;
  const bool pad_;
  const int first_;  // position of the first row
  std::vector<Row> rows_;
  std::vector<TokenId> next_;
  std::vector<float> log_probability_;
};

/// What a draft of one window cost.
struct DraftTiming {
  double encode = 0;            ///< seconds of the encoder
  double steps = 0;             ///< seconds of all that came after it
  std::vector<TokenId> tokens;  ///< as the target's, without the end
  bool complete = false;        ///< the drafter ended it; otherwise it was stopped
};

/// Drafts a window, or as much of it as there is before `stop` says so between two pieces of work,
/// one after the encoder in any case. `encoding` as for DraftModel::Begin; `retokenizer` is null
/// where both models have one vocabulary. Throws what the drafter throws.
DraftTiming TimeDraft(DraftModel& drafter, const Window& window, std::span<const float> encoding,
                      Retokenizer* retokenizer, const std::function<bool()>& stop);

}  // namespace as2d
