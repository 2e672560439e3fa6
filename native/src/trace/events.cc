#include "as2d/trace/events.h"

#include <algorithm>
#include <utility>

namespace as2d {

const char* NameOf(Activity activity) {
  switch (activity) {
    case Activity::kIdle:
      return "idle";
    case Activity::kEncoding:
      return "encoding";
    case Activity::kPrompting:
      return "prompting";
    case Activity::kVerifying:
      return "verifying";
    case Activity::kAlone:
      return "alone";
    case Activity::kDrafting:
      return "drafting";
    case Activity::kDone:
      return "done";
  }
  return "";
}

const char* NameOf(LaneName lane) { return lane == LaneName::kTarget ? "target" : "draft"; }

void EventQueue::Push(Event event) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    event.seconds = SecondsSinceStart();  // under the lock: later events have later times
    closed_ = event.kind == Event::Kind::kRunFinished;
    events_.push_back(std::move(event));
  }
  arrived_.notify_one();
}

std::vector<Event> EventQueue::Take(std::chrono::duration<double> timeout) {
  // The clock's own type would overflow from some centuries on, and turn "for ever" into "not at
  // all".
  constexpr std::chrono::duration<double> kLongest = std::chrono::hours(24 * 365);
  std::unique_lock lock(mutex_);
  arrived_.wait_for(lock, std::min(timeout, kLongest), [this] { return !events_.empty(); });
  return std::exchange(events_, {});
}

double EventQueue::SecondsSinceStart() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

}  // namespace as2d
