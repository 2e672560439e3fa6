#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "report.h"

namespace as2d::runner {

/// Thrown by whoever notices that the job is to end early.
struct Stopped {
  Status status;
  std::string message = {};
};

/// Ends a job early: at its deadline, by a signal, or when nobody reads the report any more. It
/// asks the work that goes on to end; should that not have ended half a second later, it writes the
/// report's last line and ends the process, and with it every thread.
class Stop {
 public:
  /// Make it before any other thread: it blocks SIGHUP, SIGINT and SIGTERM, as far as they are not
  /// ignored, in this thread and all that it starts, and ignores SIGPIPE. `report` must outlive it.
  explicit Stop(Report& report);
  ~Stop();
  Stop(const Stop&) = delete;
  Stop& operator=(const Stop&) = delete;

  /// From now on; 0 for never.
  void SetDeadline(double seconds);

  /// Throws Stopped if the job is to end.
  void Check() const;
  /// Sleeps, but not on after the job is to end: then throws Stopped.
  void Sleep(std::chrono::duration<double> time) const;

  /// While it lives, `cancel` is what ends the work that goes on: called by another thread, at most
  /// once, at once if the job is to end already.
  class Work {
   public:
    Work(Stop& stop, std::function<void()> cancel);
    ~Work();
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;

   private:
    Stop& stop_;
  };

 private:
  void Watch();
  Status Wait();

  Report& report_;
  int signals_ = -1;
  int wake_ = -1;  // written to: look at the deadline again, or go
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::chrono::steady_clock::time_point deadline_ = std::chrono::steady_clock::time_point::max();
  std::function<void()> cancel_;
  bool stopped_ = false;
  bool leaving_ = false;
  Status status_ = Status::kDone;
  std::thread watcher_;
};

}  // namespace as2d::runner
