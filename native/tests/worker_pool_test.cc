#include "as2d/platform/worker_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "as2d/error.h"
#include "as2d/platform/affinity.h"
#include "no_threads_for_test.h"

namespace as2d {
namespace {

constexpr int kNoSuchCore = CpuMask::kMaxCores - 1;

std::vector<int> AllowedCores() { return ReadAffinity().value_or(CpuMask{0}).Cores(); }

// Work that lasts until the test says so.
struct Gate {
  std::promise<void> open;
  std::shared_future<void> opened{open.get_future()};
  std::atomic<int> passed{0};

  static void Wait(void* self) {
    auto* const gate = static_cast<Gate*>(self);
    gate->opened.wait();
    ++gate->passed;
  }
};

std::string KernelName(std::int64_t thread_id) {
  std::ifstream stream("/proc/self/task/" + std::to_string(thread_id) + "/comm");
  std::string name;
  std::getline(stream, name);
  return name;
}

TEST(WorkerPool, WorkersAreNamedPinnedAndReportedWhenCreateReturns) {
  if (!CanPinThreads()) return;
  const int core = AllowedCores().back();
  const auto pool = WorkerPool::Pinned("as2d-target", {kNoSuchCore - 1, core});
  EXPECT_EQ(pool->width(), 2);
  SessionWorkers workers(pool);
  Gate gate;
  void* const worker = workers.Create(&Gate::Wait, &gate);
  ASSERT_NE(worker, nullptr);

  ASSERT_EQ(pool->live_workers(), 1);
  const WorkerReport report = pool->Report().front();
  EXPECT_EQ(report.name, "as2d-target-1");
  EXPECT_EQ(report.requested, CpuMask{core});
  EXPECT_EQ(report.actual, CpuMask{core});
  EXPECT_EQ(report.refused, "");
  EXPECT_TRUE(report.AsRequested());
  EXPECT_NE(report.thread_id, ThreadId());
  EXPECT_EQ(KernelName(report.thread_id), "as2d-target-1");

  gate.open.set_value();
  SessionWorkers::Join(worker);
  EXPECT_EQ(gate.passed, 1);
  EXPECT_EQ(pool->live_workers(), 0);
  EXPECT_EQ(pool->created_workers(), 1);
  EXPECT_TRUE(pool->Report().empty());
}

TEST(WorkerPool, ARefusedCoreIsReportedAndTheWorkerRunsAllTheSame) {
  if (!CanPinThreads()) return;
  const auto pool = WorkerPool::Pinned("lane", {AllowedCores().front(), kNoSuchCore});
  SessionWorkers workers(pool);
  Gate gate;
  void* const worker = workers.Create(&Gate::Wait, &gate);
  ASSERT_NE(worker, nullptr);
  const WorkerReport report = pool->Report().front();
  EXPECT_EQ(report.requested, CpuMask{kNoSuchCore});
  EXPECT_NE(report.refused, "");
  EXPECT_EQ(report.actual, ReadAffinity());
  EXPECT_FALSE(report.AsRequested());
  gate.open.set_value();
  SessionWorkers::Join(worker);
  EXPECT_EQ(gate.passed, 1);
}

TEST(WorkerPool, SessionsOfOneLaneShareItsSlots) {
  const auto pool = WorkerPool::Unpinned("lane", 3);
  SessionWorkers first(pool);
  SessionWorkers second(pool);
  Gate gate;
  std::vector<void*> workers;
  for (SessionWorkers* const session : {&first, &second}) {
    for (int i = 0; i < 2; ++i) workers.push_back(session->Create(&Gate::Wait, &gate));
  }
  std::vector<std::string> names;
  for (const WorkerReport& report : pool->Report()) {
    names.push_back(report.name);
    EXPECT_TRUE(report.requested.Empty());
    EXPECT_EQ(report.actual, ReadAffinity().value_or(CpuMask()));
    EXPECT_TRUE(report.AsRequested());
  }
  EXPECT_EQ(names, (std::vector<std::string>{"lane-1", "lane-2", "lane-1", "lane-2"}));
  gate.open.set_value();
  for (void* const worker : workers) SessionWorkers::Join(worker);
  EXPECT_EQ(gate.passed, 4);
  EXPECT_EQ(pool->live_workers(), 0);
}

TEST(WorkerPool, LongNamesKeepTheirSlot) {
  const auto pool = WorkerPool::Unpinned("a-very-long-lane-name", 1);
  const WorkerPool::CallerPin pin = pool->PinCaller();
  EXPECT_EQ(pin.report().name, "a-very-long-0");
  EXPECT_EQ(ThreadName(), pin.report().name);
}

TEST(WorkerPool, TheCallerIsPinnedForAsLongAsItsPinLives) {
  if (!CanPinThreads()) return;
  std::thread([] {
    SetThreadName("before");
    const auto before = ReadAffinity();
    const int core = AllowedCores().back();
    const auto pool = WorkerPool::Pinned("lane", {core});
    {
      const WorkerPool::CallerPin pin = pool->PinCaller();
      EXPECT_EQ(ReadAffinity(), CpuMask{core});
      EXPECT_EQ(ThreadName(), "lane-0");
      ASSERT_EQ(pool->Report().size(), 1u);
      EXPECT_EQ(pool->Report().front().thread_id, ThreadId());
      EXPECT_EQ(pool->live_workers(), 0);
    }
    EXPECT_EQ(ReadAffinity(), before);
    EXPECT_EQ(ThreadName(), "before");
    EXPECT_TRUE(pool->Report().empty());
  }).join();
}

TEST(WorkerPool, AMovedPinIsUndoneOnce) {
  const auto pool = WorkerPool::Unpinned("lane", 1);
  {
    WorkerPool::CallerPin first = pool->PinCaller();
    const WorkerPool::CallerPin second = std::move(first);
    EXPECT_EQ(pool->Report().size(), 1u);
  }
  EXPECT_TRUE(pool->Report().empty());
}

TEST(WorkerPool, BadLanesAreRefusedByName) {
  const struct {
    std::vector<int> cores;
    std::string says;
  } cases[] = {
      {{}, "lane x: no cores given"},
      {{1, 2, 1}, "lane x: core 1 is given twice"},
      {{-1}, "lane x: core -1 is out of range; ids go from 0 to 1023"},
      {{1024}, "lane x: core 1024 is out of range; ids go from 0 to 1023"},
  };
  for (const auto& c : cases) {
    try {
      WorkerPool::Pinned("x", c.cores);
      FAIL() << c.says;
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), c.says);
    }
  }
  EXPECT_THROW(WorkerPool::Unpinned("x", 0), Error);
}

TEST(WorkerPool, ThePoolLivesUntilItsLastWorkerIsGone) {
  auto pool = WorkerPool::Unpinned("lane", 2);
  const std::weak_ptr<WorkerPool> watch = pool;
  Gate gate;
  void* worker = nullptr;
  {
    SessionWorkers workers(std::move(pool));
    worker = workers.Create(&Gate::Wait, &gate);
  }
  EXPECT_FALSE(watch.expired());
  gate.open.set_value();
  SessionWorkers::Join(worker);
  EXPECT_TRUE(watch.expired());
}

#if defined(__GLIBC__)
TEST(WorkerPool, NullWhenTheSystemHasNoThreadLeft) {
  const auto pool = WorkerPool::Unpinned("lane", 2);
  SessionWorkers workers(pool);
  Gate gate;
  {
    const NoThreads none;
    EXPECT_EQ(workers.Create(&Gate::Wait, &gate), nullptr);
  }
  EXPECT_EQ(pool->live_workers(), 0);

  gate.open.set_value();
  void* const worker = workers.Create(&Gate::Wait, &gate);
  ASSERT_NE(worker, nullptr);
  SessionWorkers::Join(worker);
  EXPECT_EQ(pool->created_workers(), 1);
}
#endif

}  // namespace
}  // namespace as2d
