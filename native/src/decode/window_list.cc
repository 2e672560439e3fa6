#include <algorithm>
#include <utility>

#include "as2d/platform/crew.h"
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

std::shared_ptr<WindowTask> WindowList::NextForTarget(bool wait) {
  std::unique_lock lock(mutex_);
  const auto available = [&] { return target_ < End(); };
  if (wait && !available()) {
    const CrewLane::Rest rest;
    changed_.wait(lock, [&] { return available() || closed_ || cancelled(); });
  }
  if (cancelled() || !available()) return nullptr;
  const std::shared_ptr<WindowTask>& task = At(target_);
  task->passed = !open_ && target_ >= drafter_;
  ++target_;
  return task;
}

void WindowList::TargetEncoded(WindowTask& task, std::span<const float> encoding) {
  std::vector<float> copy;
  {
    const std::lock_guard lock(mutex_);
    copy.swap(spare_);
  }
  copy.assign(encoding.begin(), encoding.end());
  {
    const std::lock_guard lock(mutex_);
    task.encoding = std::move(copy);
    task.encoded = true;
  }
  changed_.notify_all();
}

void WindowList::LetDraft(bool open) {
  {
    const std::lock_guard lock(mutex_);
    open_ = open;
  }
  changed_.notify_all();
}

bool WindowList::drafting() {
  const std::lock_guard lock(mutex_);
  return drafting_ != nullptr;
}

std::shared_ptr<WindowTask> WindowList::NextForDrafter() {
  const CrewLane::Rest rest;
  std::unique_lock lock(mutex_);
  if (drafting_) spare_ = std::move(drafting_->encoding);
  drafting_ = nullptr;
  changed_.wait(lock, [&] {
    drafter_ = std::max(drafter_, first_);
    while (drafter_ < End() && (At(drafter_)->finished || At(drafter_)->passed)) ++drafter_;
    if (cancelled()) return true;
    if (drafter_ >= End()) return closed_;
    return open_ && drafter_ <= first_ + max_lead_ && (At(drafter_)->encoded || !tell_drafter_);
  });
  if (cancelled() || drafter_ >= End()) return nullptr;
  drafting_ = At(drafter_++);
  return drafting_;
}

void WindowList::TargetFinished(WindowTask& task) {
  {
    const std::lock_guard lock(mutex_);
    task.finished.store(true, std::memory_order_relaxed);
    for (; !tasks_.empty() && tasks_.front()->finished; ++first_) tasks_.pop_front();
  }
  changed_.notify_all();
}

}  // namespace as2d
