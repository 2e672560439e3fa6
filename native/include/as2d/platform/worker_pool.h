#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "as2d/platform/cpu_mask.h"

namespace as2d {

/// One thread of a lane, as the kernel placed it.
struct WorkerReport {
  std::string name;
  std::int64_t thread_id = 0;  ///< 0 if the platform has none.
  CpuMask requested;           ///< Empty: not pinned on purpose.
  CpuMask actual;              ///< Read back after the request; empty if it cannot be read.
  std::string refused;         ///< Why the kernel refused the request; "" if it did not.

  /// Pinned as asked, or not asked to be.
  bool AsRequested() const { return refused.empty() && (requested.Empty() || requested == actual); }
};

/// The cores of one lane and the threads that run on them.
///
/// Slot 0 is the thread that calls Run; slots 1..width-1 are the workers of each session, which the
/// inference runtime creates through SessionWorkers. Several sessions of one lane share a pool:
/// their workers share the slots' cores and names, so only one session of a lane may run at a time
/// for full speed. All methods may be called from any thread.
class WorkerPool : public std::enable_shared_from_this<WorkerPool> {
 public:
  /// A lane on `cores`, slot i on cores[i]. Throws Error if `cores` is empty, has an id twice or
  /// one out of range. `name` becomes the prefix of thread names and is cut so that "-<mark><slot>"
  /// fits.
  static std::shared_ptr<WorkerPool> Pinned(std::string name, std::vector<int> cores);
  /// A lane of `width` >= 1 threads that go where the scheduler puts them.
  static std::shared_ptr<WorkerPool> Unpinned(std::string name, int width);

  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  const std::string& name() const { return name_; }
  int width() const { return width_; }
  /// Core of each slot; empty if the lane is not pinned.
  const std::vector<int>& cores() const { return cores_; }

  /// Threads alive now: pinned callers first, then workers in the order of their creation.
  std::vector<WorkerReport> Report() const;
  /// Workers alive now, callers not counted.
  int live_workers() const;
  /// Workers ever created.
  int created_workers() const;

  /// Puts the calling thread into slot 0: named and, in a pinned lane, bound to the first core. The
  /// returned object restores name and mask when it goes; destroy it on the same thread.
  class CallerPin;
  [[nodiscard]] CallerPin PinCaller();

  /// Starts a thread in `slot` that runs `work`, and returns once it is named (with `mark` before
  /// the slot), pinned and in the report, so that nothing is ever computed on an unpinned thread.
  /// Throws std::system_error when there is no thread to be had.
  std::thread Start(int slot, const std::string& mark, std::function<void()> work);

 private:
  using Entry = std::list<WorkerReport>::iterator;

  WorkerPool(std::string name, std::vector<int> cores, int width);
  /// Names and pins the calling thread and reads back what came of it.
  WorkerReport Place(int slot, const std::string& mark) const;
  Entry Enter(std::list<WorkerReport>& where, WorkerReport report);
  void Leave(std::list<WorkerReport>& where, Entry entry);

  const std::string name_;
  const std::vector<int> cores_;
  const int width_;
  mutable std::mutex mutex_;
  std::list<WorkerReport> callers_;  // Lists: an entry stays put while others come and go.
  std::list<WorkerReport> workers_;
  int created_ = 0;
};

class WorkerPool::CallerPin {
 public:
  CallerPin(CallerPin&& other) noexcept;
  CallerPin& operator=(CallerPin&&) = delete;
  ~CallerPin();
  WorkerReport report() const { return *entry_; }

 private:
  friend class WorkerPool;
  CallerPin() = default;
  std::shared_ptr<WorkerPool> pool_;  // Null after a move.
  Entry entry_;
  CpuMask mask_before_;
  std::string name_before_;
};

/// Thread hooks of one session, in the signatures of the ONNX Runtime C API. The object must
/// outlive the session; the runtime creates the workers in order while the session is made, so a
/// counter gives each its slot.
class SessionWorkers {
 public:
  using WorkerFunction = void (*)(void*);

  /// `pool` must not be null.
  explicit SessionWorkers(std::shared_ptr<WorkerPool> pool);
  SessionWorkers(const SessionWorkers&) = delete;
  SessionWorkers& operator=(const SessionWorkers&) = delete;

  /// Starts a worker that runs `work(argument)` until it returns; see WorkerPool::Start. The slot
  /// after the last wraps to slot 1. Null if the thread cannot be created.
  void* Create(WorkerFunction work, void* argument) noexcept;
  /// Waits for the worker to return and frees it.
  static void Join(void* worker) noexcept;

 private:
  std::shared_ptr<WorkerPool> pool_;
  int next_slot_ = 1;
};

}  // namespace as2d
