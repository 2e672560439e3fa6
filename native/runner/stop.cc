#include "stop.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <utility>

#include "as2d/error.h"

namespace as2d::runner {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kGrace(500);

sigset_t BlockSignals() {
  std::signal(SIGPIPE, SIG_IGN);
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGHUP, SIGINT, SIGTERM}) {
    struct sigaction action{};
    // Whoever ignores one, as nohup does, means it.
    if (sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) continue;
    sigaddset(&set, signal);
  }
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  return set;
}

Status StatusOf(std::uint32_t signal) {
  if (signal == SIGHUP) return Status::kHangUp;
  return signal == SIGINT ? Status::kInterrupt : Status::kTerminate;
}

int Milliseconds(Clock::time_point until) {
  if (until == Clock::time_point::max()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 3'600'000));
}

}  // namespace

Stop::Stop(Report& report) : report_(report) {
  const sigset_t set = BlockSignals();
  signals_ = signalfd(-1, &set, SFD_CLOEXEC);
  wake_ = eventfd(0, EFD_CLOEXEC);
  if (signals_ < 0 || wake_ < 0) throw Error("the system has no descriptor to watch for signals");
  watcher_ = std::thread([this] { Watch(); });
}

Stop::~Stop() {
  {
    const std::lock_guard lock(mutex_);
    leaving_ = true;
  }
  changed_.notify_all();
  eventfd_write(wake_, 1);
  watcher_.join();
  close(signals_);
  close(wake_);
}

void Stop::SetDeadline(double seconds) {
  if (seconds <= 0) return;
  {
    // More than anybody waits for, and far from what a clock can hold.
    constexpr double kMost = 1e7;
    const std::lock_guard lock(mutex_);
    deadline_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                   std::chrono::duration<double>(std::min(seconds, kMost)));
  }
  eventfd_write(wake_, 1);
}

void Stop::Check() const { Sleep(std::chrono::duration<double>(0)); }

void Stop::Sleep(std::chrono::duration<double> time) const {
  std::unique_lock lock(mutex_);
  if (changed_.wait_for(lock, time, [this] { return stopped_; })) throw Stopped{status_, ""};
}

void Stop::Watch() {
  const Status status = Wait();
  if (status == Status::kDone) return;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    status_ = status;
    // Under the lock: the work that it ends cannot go away in the meantime.
    if (cancel_) std::exchange(cancel_, nullptr)();
  }
  changed_.notify_all();
  std::unique_lock lock(mutex_);
  if (changed_.wait_for(lock, kGrace, [this] { return leaving_; })) return;
  report_.End(status, "");
  _exit(ExitCode(status));
}

/// Blocks until the job is to end; kDone: it is over.
Status Stop::Wait() {
  while (true) {
    std::array<pollfd, 3> watched = {{{signals_, POLLIN, 0},
                                      {wake_, POLLIN, 0},
                                      // Asks for nothing: what is always told is that the other
                                      // end has gone.
                                      {report_.descriptor(), 0, 0}}};
    Clock::time_point until;
    {
      const std::lock_guard lock(mutex_);
      if (leaving_) return Status::kDone;
      until = deadline_;
    }
    if (poll(watched.data(), watched.size(), Milliseconds(until)) < 0) continue;
    if (watched[0].revents != 0) {
      signalfd_siginfo info{};
      if (read(signals_, &info, sizeof(info)) == sizeof(info)) return StatusOf(info.ssi_signo);
    }
    if (watched[2].revents != 0) return Status::kPipe;
    if (watched[1].revents != 0) {
      eventfd_t count = 0;
      eventfd_read(wake_, &count);
    }
    if (Clock::now() >= until) return Status::kDeadline;
  }
}

Stop::Work::Work(Stop& stop, std::function<void()> cancel) : stop_(stop) {
  const std::lock_guard lock(stop.mutex_);
  if (stop.stopped_) {
    cancel();
  } else {
    stop.cancel_ = std::move(cancel);
  }
}

Stop::Work::~Work() {
  const std::lock_guard lock(stop_.mutex_);
  stop_.cancel_ = nullptr;
}

}  // namespace as2d::runner
