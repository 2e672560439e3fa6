#include <algorithm>
#include <utility>

#include "run_state.h"

namespace as2d {

bool WindowList::Add(std::shared_ptr<WindowTask> task) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return false;
    if (cancelled()) return true;  // it would be given up at once
    tasks_.push_back(std::move(task));
  }
  changed_.notify_all();
  return true;
}

void WindowList::Close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
}

void WindowList::Cancel() {
  {
    const std::lock_guard lock(mutex_);
    cancelled_.store(true, std::memory_order_relaxed);
  }
  changed_.notify_all();
}

std::shared_ptr<WindowTask> WindowList::NextForTarget() {
  std::unique_lock lock(mutex_);
  const auto available = [&] { return !tasks_.empty(); };
  changed_.wait(lock, [&] { return available() || closed_ || cancelled(); });
  if (cancelled() || !available()) return nullptr;
  return tasks_.front();
}

std::shared_ptr<WindowTask> WindowList::NextForDrafter() {
  std::unique_lock lock(mutex_);
  const auto end = [&] { return target_ + static_cast<std::int64_t>(tasks_.size()); };
  changed_.wait(lock, [&] {
    drafter_ = std::max(drafter_, target_);  // what the target has finished is skipped
    return (drafter_ < end() && drafter_ <= target_ + max_lead_) ||
           (closed_ && drafter_ >= end()) || cancelled();
  });
  if (cancelled() || drafter_ >= end()) return nullptr;
  return tasks_[static_cast<std::size_t>(drafter_++ - target_)];
}

void WindowList::TargetFinished(WindowTask& task) {
  task.finished.store(true, std::memory_order_relaxed);
  {
    const std::lock_guard lock(mutex_);
    tasks_.pop_front();
    ++target_;
  }
  changed_.notify_all();
}

}  // namespace as2d
