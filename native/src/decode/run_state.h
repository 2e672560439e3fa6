// What the lanes of one run share. Private to the run's sources.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
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
  /// What the target's encoder says of the window, for a drafter that needs it. The target lane's
  /// until it has told the list; then the drafter's.
  std::vector<float> encoding;
  bool encoded = false;  // the list's
  /// Set when the target takes the window: it is not drafted, and never will be.
  bool passed = false;
  DraftStream stream;
  /// Set by the target lane: all of it is committed, so a draft of it has no more use. It says that
  /// the audio is used up, nothing of the text.
  std::atomic<bool> finished{false};
};

/// The queued windows. Each lane takes them in order, at its own cursor; the target may finish them
/// in another order.
class WindowList {
 public:
  /// With `tell_drafter` the drafter gets no window before the target has encoded it.
  WindowList(std::int64_t max_lead, bool tell_drafter)
      : max_lead_(max_lead), tell_drafter_(tell_drafter) {}

  /// Returns false after Close; after Cancel the task is dropped.
  bool Add(std::shared_ptr<WindowTask> task);
  void Close();
  void Cancel();

  /// The next window; null when there will be none. Blocks until there is one if `wait`, else it
  /// may also be null because there is none yet.
  std::shared_ptr<WindowTask> NextForTarget(bool wait);

  /// Whether the target is to tell what its encoder says.
  bool tell_drafter() const { return tell_drafter_; }
  /// The target has encoded its window: gives the drafter a copy of what it says.
  void TargetEncoded(WindowTask& task, std::span<const float> encoding);

  /// Whether the drafter gets windows; the one that it has it keeps. At first it does.
  void LetDraft(bool open);
  /// Whether the drafter has one.
  bool drafting();

  /// Blocks until there is a window after those drafted, not finished or passed, at most the
  /// bounded lead ahead of the first that is not finished, and encoded if the drafter needs that.
  /// Null when there will be none. What was said of the last one's audio is valid no more.
  std::shared_ptr<WindowTask> NextForDrafter();

  /// The target is done with its window.
  void TargetFinished(WindowTask& task);

  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

 private:
  const std::int64_t max_lead_;
  const bool tell_drafter_;
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
  std::shared_ptr<WindowTask> drafting_;
  std::vector<float> spare_;  // memory for an encoding
  bool open_ = true;          // for the drafter
  bool closed_ = false;
};

struct Run::State {
  State(std::shared_ptr<TargetModel> t, std::shared_ptr<Drafter> d, RunOptions o)
      : target(std::move(t)),
        drafter(std::move(d)),
        lease(std::move(o.lease)),
        options(std::move(o)),
        windows(options.max_lead_windows, drafter && drafter->model->needs_encoding()) {
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
