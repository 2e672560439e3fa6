// What the lanes of one run share. Private to the run's sources.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "as2d/decode/draft_channel.h"
#include "as2d/decode/draft_stream.h"
#include "as2d/decode/run.h"

namespace as2d {

/// A window and what is drafted for it.
struct WindowTask {
  WindowTask(Window w, std::size_t capacity) : window(std::move(w)), stream(capacity) {}

  const Window window;
  DraftStream stream;
  /// Set by the target lane: all of it is committed, so a draft of it has no more use. It says that
  /// the audio is used up, nothing of the text.
  std::atomic<bool> finished{false};
};

/// The queued windows. Each lane takes them in order, at its own cursor; the target may finish them
/// in another order.
class WindowList {
 public:
  explicit WindowList(std::int64_t max_lead) : max_lead_(max_lead) {}

  /// Returns false after Close; after Cancel the task is dropped.
  bool Add(std::shared_ptr<WindowTask> task);
  void Close();
  void Cancel();

  /// The next window; null when there will be none. Blocks until there is one if `wait`, else it
  /// may also be null because there is none yet.
  std::shared_ptr<WindowTask> NextForTarget(bool wait);

  /// Blocks until there is a window after those drafted, not finished, and at most the bounded lead
  /// ahead of the first that is not finished. Null when there will be none.
  std::shared_ptr<WindowTask> NextForDrafter();

  /// The target is done with its window.
  void TargetFinished(WindowTask& task);

  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

 private:
  const std::int64_t max_lead_;
  std::atomic<bool> cancelled_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t End() const { return first_ + static_cast<std::int64_t>(tasks_.size()); }
  const std::shared_ptr<WindowTask>& At(std::int64_t task) const {
    return tasks_[static_cast<std::size_t>(task - first_)];
  }

  // Tasks [first_, End()) are alive: those before are finished.
  std::deque<std::shared_ptr<WindowTask>> tasks_;
  std::int64_t first_ = 0;
  std::int64_t target_ = 0;   // the target's cursor
  std::int64_t drafter_ = 0;  // the drafter's cursor
  bool closed_ = false;
};

struct Run::State {
  State(std::shared_ptr<TargetModel> t, std::shared_ptr<Drafter> d, RunOptions o)
      : target(std::move(t)),
        drafter(std::move(d)),
        lease(std::move(o.lease)),
        options(std::move(o)),
        windows(options.max_lead_windows) {
    if (drafter && options.coupled) channel = std::make_unique<DraftChannel>(options.patience);
  }

  const std::shared_ptr<TargetModel> target;
  const std::shared_ptr<Drafter> drafter;  // may be null
  std::shared_ptr<void> lease;             // until the models are released
  const RunOptions options;
  Counters counters;
  EventQueue events;
  WindowList windows;
  std::unique_ptr<DraftChannel> channel;              // null where the lanes are not coupled
  std::vector<std::unique_ptr<Strategy>> strategies;  // the target lane's own
  std::atomic<double> wall_seconds{-1};

  /// Waits for the draft lane to end, at most the grace time; false when it still runs.
  bool WaitForDraftLane();
  bool draft_lane_done();
  /// There is no draft lane any more, or there never was: nobody waits for it.
  void DraftLaneDone();

  /// Tells once that the drafter is of no more use, and why.
  void LoseDrafter(std::string cause);

  /// Ends running calls of both models, unless they have been released.
  void CancelModels();
  /// The run is over: the models may be another run's from now on.
  void ReleaseModels();

 private:
  std::mutex mutex_;
  std::condition_variable draft_lane_ended_;
  bool draft_lane_done_ = false;
  std::mutex models_mutex_;
  bool models_released_ = false;
};

}  // namespace as2d
