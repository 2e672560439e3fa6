// Small tools of both lanes. Private to the run's sources.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <string>
#include <utility>

#include "as2d/error.h"
#include "as2d/trace/counters.h"
#include "as2d/trace/events.h"

namespace as2d {

/// One line that says why something failed, never empty: an empty one would say that all is well.
inline std::string CauseOf(const std::exception& failure) {
  std::string cause = OneLine(failure.what());
  return cause.empty() ? "it failed without saying why" : cause;
}

/// Adds the time from construction to destruction to a counter.
class PhaseTimer {
 public:
  explicit PhaseTimer(Counter& nanoseconds)
      : nanoseconds_(nanoseconds), start_(std::chrono::steady_clock::now()) {}
  ~PhaseTimer() { nanoseconds_.Add((std::chrono::steady_clock::now() - start_).count()); }
  PhaseTimer(const PhaseTimer&) = delete;
  PhaseTimer& operator=(const PhaseTimer&) = delete;

 private:
  static_assert(std::chrono::steady_clock::period::den == 1'000'000'000);
  Counter& nanoseconds_;
  const std::chrono::steady_clock::time_point start_;
};

/// Tells what a lane does, when it changes.
class ActivityReporter {
 public:
  ActivityReporter(LaneName lane, EventQueue& events) : lane_(lane), events_(events) {}

  void Set(Activity activity, std::int64_t window) {
    if (activity == activity_ && window == window_) return;
    activity_ = activity;
    window_ = window;
    Event event;
    event.kind = Event::Kind::kLaneChanged;
    event.lane = lane_;
    event.activity = activity;
    event.window = window;
    events_.Push(std::move(event));
  }

 private:
  const LaneName lane_;
  EventQueue& events_;
  Activity activity_ = Activity::kIdle;
  std::int64_t window_ = -1;
};

}  // namespace as2d
