#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "stop.h"

namespace as2d::runner {
namespace {

/// Somebody who reads the report.
class Reader {
 public:
  Reader() {
    if (pipe2(ends_.data(), O_NONBLOCK | O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  }
  ~Reader() {
    Leave();
    close(ends_[1]);
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  int end() const { return ends_[1]; }
  void Leave() {
    if (ends_[0] >= 0) close(ends_[0]);
    ends_[0] = -1;
  }
  std::string Text() const {
    std::array<char, 4096> text{};
    const ssize_t count = read(ends_[0], text.data(), text.size());
    return {text.data(), count > 0 ? static_cast<std::size_t>(count) : 0};
  }

 private:
  std::array<int, 2> ends_ = {-1, -1};
};

/// What a sleeper is told.
Status Awaited(const Stop& stop) {
  try {
    stop.Sleep(std::chrono::hours(1));
  } catch (const Stopped& stopped) {
    return stopped.status;
  }
  return Status::kDone;
}

TEST(RunnerStop, WakesWhoeverSleepsAtTheDeadline) {
  const Reader reader;
  Report report(reader.end());
  Stop stop(report);
  stop.SetDeadline(0);  // never
  stop.Check();
  stop.SetDeadline(0.01);
  EXPECT_EQ(Awaited(stop), Status::kDeadline);
  EXPECT_THROW(stop.Check(), Stopped);
}

TEST(RunnerStop, BySignal) {
  for (const auto& [signal, status] :
       {std::pair(SIGHUP, Status::kHangUp), std::pair(SIGINT, Status::kInterrupt),
        std::pair(SIGTERM, Status::kTerminate)}) {
    const Reader reader;
    Report report(reader.end());
    const Stop stop(report);
    kill(getpid(), signal);
    EXPECT_EQ(Awaited(stop), status);
    EXPECT_EQ(ExitCode(status), 128 + signal);
  }
}

TEST(RunnerStop, WhenTheReaderLeaves) {
  Reader reader;
  Report report(reader.end());
  const Stop stop(report);
  stop.Check();
  reader.Leave();
  EXPECT_EQ(Awaited(stop), Status::kPipe);
  report.Line("late", [](Json&) {});  // ends nothing
}

TEST(RunnerStop, CancelsTheWorkOnce) {
  const Reader reader;
  Report report(reader.end());
  Stop stop(report);
  std::atomic<int> cancelled{0};
  {
    const Stop::Work done(stop, [&] { cancelled += 100; });
  }
  {
    const Stop::Work work(stop, [&] { ++cancelled; });
    stop.SetDeadline(0.01);
    EXPECT_EQ(Awaited(stop), Status::kDeadline);
  }
  EXPECT_EQ(cancelled, 1);
  const Stop::Work late(stop, [&] { ++cancelled; });
  EXPECT_EQ(cancelled, 2);
}

TEST(RunnerStop, WritesTheLastLineOnce) {
  const Reader reader;
  Report report(reader.end());
  report.End(Status::kDeadline, "");
  report.End(Status::kDone, "again");
  report.Line("more", [](Json&) {});
  const std::string text = reader.Text();
  EXPECT_EQ(text.find('\n'), text.size() - 1);
  EXPECT_NE(text.find(R"("status": "deadline", "message": null)"), std::string::npos);
}

// Forked, not started anew, which an emulator of another processor would refuse: no thread runs
// yet, as suites of this name come first.
TEST(RunnerStopDeathTest, EndsAProcessThatDoesNotEndItself) {
  GTEST_FLAG_SET(death_test_style, "fast");
  EXPECT_EXIT(
      {
        Report report(STDERR_FILENO);
        Stop stop(report);
        stop.SetDeadline(0.01);
        std::this_thread::sleep_for(std::chrono::hours(1));
      },
      testing::ExitedWithCode(124), R"("status": "deadline")");
}

}  // namespace
}  // namespace as2d::runner
