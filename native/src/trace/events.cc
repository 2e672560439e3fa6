#include "as2d/trace/events.h"

#include <utility>

namespace as2d {

void EventQueue::Push(Event event) {
  event.seconds = SecondsSinceStart();
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    closed_ = event.kind == Event::Kind::kRunFinished;
    events_.push_back(std::move(event));
  }
  arrived_.notify_one();
}

std::vector<Event> EventQueue::Take(std::chrono::duration<double> timeout) {
  std::unique_lock lock(mutex_);
  arrived_.wait_for(lock, timeout, [this] { return !events_.empty(); });
  return std::exchange(events_, {});
}

double EventQueue::SecondsSinceStart() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

}  // namespace as2d
