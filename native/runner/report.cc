#include "report.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>

namespace as2d::runner {
namespace {

const char* NameOf(Status status) {
  switch (status) {
    case Status::kDone:
      return "done";
    case Status::kDiffers:
      return "differs";
    case Status::kUsage:
    case Status::kFailed:
      return "failed";
    case Status::kDeadline:
      return "deadline";
    case Status::kHangUp:
    case Status::kInterrupt:
    case Status::kPipe:
    case Status::kTerminate:
      return "interrupted";
  }
  return "";
}

/// Not getrusage, which begins with what the parent held.
std::optional<std::int64_t> PeakMemory() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("VmHWM:")) continue;
    std::istringstream number(line.substr(6));
    std::int64_t kib = 0;
    if (number >> kib) return kib * 1024;
  }
  return std::nullopt;
}

}  // namespace

int ExitCode(Status status) {
  switch (status) {
    case Status::kDone:
      return 0;
    case Status::kDiffers:
      return 1;
    case Status::kUsage:
      return 2;
    case Status::kFailed:
      return 3;
    case Status::kDeadline:
      return 124;
    case Status::kHangUp:
      return 128 + SIGHUP;
    case Status::kInterrupt:
      return 128 + SIGINT;
    case Status::kPipe:
      return 128 + SIGPIPE;
    case Status::kTerminate:
      return 128 + SIGTERM;
  }
  return 70;
}

void Report::Line(std::string_view kind, const std::function<void(Json&)>& fields) {
  const std::lock_guard lock(mutex_);
  if (!ended_) Write(kind, fields);
}

void Report::End(Status status, const std::string& message) {
  // Not a timed mutex, which the thread sanitizer does not know.
  std::unique_lock lock(mutex_, std::try_to_lock);
  for (int tries = 0; !lock && tries < 20; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    lock.try_lock();
  }
  if (!lock || ended_) return;
  ended_ = true;
  Write("end", [&](Json& json) {
    json.Field("status", NameOf(status)).Key("message");
    message.empty() ? json.Value(std::nullopt) : json.Value(message);
    json.Field("peak_memory_bytes", PeakMemory());
  });
}

void Report::Write(std::string_view kind, const std::function<void(Json&)>& fields) {
  const std::chrono::duration<double> at = std::chrono::steady_clock::now() - start_;
  Json json;
  json.BeginObject().Field("kind", kind).Field("at", at.count());
  fields(json);
  json.EndObject();
  const std::string line = json.text() + '\n';
  for (std::size_t written = 0; written < line.size();) {
    const ssize_t count = write(descriptor_, line.data() + written, line.size() - written);
    if (count < 0 && errno != EINTR) return;  // the reader has gone, which Stop sees, too
    if (count > 0) written += static_cast<std::size_t>(count);
  }
}

}  // namespace as2d::runner
