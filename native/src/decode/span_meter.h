// Measures the target lane from the end of one window to the end of the next. Private to the run's
// sources.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>

#include "as2d/decode/draft_gate.h"
#include "as2d/decode/step_costs.h"

namespace as2d {

class SpanMeter {
 public:
  using Clock = std::chrono::steady_clock;

  /// With `pad` a step of an odd number of rows costs what one row more does.
  SpanMeter(const std::optional<StepCosts>& costs, bool pad)
      : costs_(costs && costs->alone.known() ? costs : std::nullopt), pad_(pad) {}

  bool costs_known() const { return costs_.has_value(); }

  /// A new span begins. `mixed`: it is not to be told.
  void Begin(bool mixed) {
    span_ = {};
    mixed_ = mixed;
    start_ = Clock::now();
  }

  /// The span, unless windows with and without drafts were under way in it.
  std::optional<LaneSpan> End() {
    if (mixed_) return std::nullopt;
    span_.seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    return span_;
  }

  void Encoded(std::size_t samples, Clock::duration time) {
    const double audio = static_cast<double>(samples) / 16000;
    span_.encode_seconds += std::chrono::duration<double>(time).count();
    span_.audio += audio;
    if (costs_) span_.predicted += costs_->encode_base + costs_->encode_per_second * audio;
  }

  void Prompted(std::size_t tokens) {
    span_.tokens += 1;
    if (costs_) span_.predicted += Seconds(tokens);
  }

  /// So many tokens came of a step for so many windows. Alone, each of those steps would have given
  /// one to each window.
  void Stepped(std::size_t windows, std::size_t tokens) {
    const auto count = static_cast<double>(tokens);
    span_.tokens += count;
    if (costs_) span_.predicted += count * Seconds(windows) / static_cast<double>(windows);
  }

  void Mix() { mixed_ = true; }

  /// The lane had no window for so long, which is not its time.
  void Waited(Clock::duration time) { start_ += time; }

 private:
  double Seconds(std::size_t rows) const {
    return costs_->alone.Seconds(pad_ ? rows + rows % 2 : rows);
  }

  const std::optional<StepCosts> costs_;
  const bool pad_;
  Clock::time_point start_ = Clock::now();
  bool mixed_ = false;
  LaneSpan span_;
};

}  // namespace as2d
