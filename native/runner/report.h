// What the runner tells; as2d_cli/device/results.py has the fields.
#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include "json.h"

namespace as2d::runner {

/// Statuses of the last line, and of the program: see job.h.
enum class Status {
  kDone,
  kDiffers,
  kUsage,
  kFailed,
  kDeadline,
  kHangUp,
  kInterrupt,
  kPipe,
  kTerminate
};

int ExitCode(Status status);

/// Writes lines to a descriptor, each at once and whole. Any thread may call it.
class Report {
 public:
  explicit Report(int descriptor) : descriptor_(descriptor) {}

  /// One line: `fields` are added to an object that has "kind" and "at" already. What nobody reads
  /// any more is dropped: see Stop. After End nothing is written.
  void Line(std::string_view kind, const std::function<void(Json&)>& fields);

  /// The last line, once. Waits shortly for a line that is being written, and does without its own
  /// if that does not end. Any thread.
  void End(Status status, const std::string& message);

  int descriptor() const { return descriptor_; }

 private:
  void Write(std::string_view kind, const std::function<void(Json&)>& fields);

  const int descriptor_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  bool ended_ = false;
};

}  // namespace as2d::runner
