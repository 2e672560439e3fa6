#include "as2d/platform/crew.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "as2d/error.h"
#include "as2d/platform/affinity.h"
#include "no_threads_for_test.h"

namespace as2d {
namespace {

using namespace std::chrono_literals;

std::vector<int> Cores() { return ReadAffinity().value_or(CpuMask{0}).Cores(); }

template <typename Work>
void Parallel(CrewLane& lane, std::size_t count, Work work) {
  lane.Parallel(
      count, [](void* context, std::size_t i) { (*static_cast<Work*>(context))(i); }, &work);
}

/// Threads that do the tasks of one call, each of which waits until `wanted` threads have come, or
/// the time is up.
std::set<std::thread::id> ThreadsOf(CrewLane& lane, std::size_t wanted,
                                    std::chrono::milliseconds patience) {
  std::mutex mutex;
  std::set<std::thread::id> threads;
  const auto deadline = std::chrono::steady_clock::now() + patience;
  Parallel(lane, 50, [&](std::size_t) {
    const auto enough = [&] {
      const std::lock_guard lock(mutex);
      threads.insert(std::this_thread::get_id());
      return threads.size() >= wanted;
    };
    while (!enough() && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(1ms);
    }
  });
  return threads;
}

TEST(CrewTest, EveryTaskIsDoneOnce) {
  const auto crew = Crew::Make();
  const auto lane = crew->AddLane(WorkerPool::Unpinned("lane", 3));
  const CrewLane::Inside inside(lane);
  for (int round = 0; round < 2000; ++round) {
    const auto count = static_cast<std::size_t>(round % 70);
    std::vector<std::atomic<int>> done(count);
    Parallel(*lane, count, [&](std::size_t i) { ++done[i]; });
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(done[i], 1) << i << " of " << count;
  }
}

TEST(CrewTest, ALaneIsAsWideAsItsPool) {
  const auto crew = Crew::Make();
  const auto lane = crew->AddLane(WorkerPool::Unpinned("lane", 3));
  const CrewLane::Inside inside(lane);
  EXPECT_EQ(ThreadsOf(*lane, 3, 20s).size(), 3U);
}

TEST(CrewTest, HelpersComeAgainAfterTheySlept) {
  const auto crew = Crew::Make();
  const auto lane = crew->AddLane(WorkerPool::Unpinned("lane", 2));
  const CrewLane::Inside inside(lane);
  for (int round = 0; round < 20; ++round) {
    EXPECT_EQ(ThreadsOf(*lane, 2, 20s).size(), 2U);
    std::this_thread::sleep_for(5ms);
  }
}

TEST(CrewTest, KnowsTheLaneOfAThread) {
  const auto crew = Crew::Make();
  const auto lane = crew->AddLane(WorkerPool::Unpinned("lane", 1));
  EXPECT_EQ(CrewLane::Current(), nullptr);
  {
    const CrewLane::Inside inside(lane);
    EXPECT_EQ(CrewLane::Current(), lane.get());
    std::thread([] { EXPECT_EQ(CrewLane::Current(), nullptr); }).join();
  }
  EXPECT_EQ(CrewLane::Current(), nullptr);
  const CrewLane::Rest nothing;  // of a thread in no lane
}

class LendingTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!CanPinThreads() || Cores().size() < 2) GTEST_SKIP() << "needs two cores to pin to";
    first_ = crew_->AddLane(WorkerPool::Pinned("first", {Cores()[0]}));
    second_ = crew_->AddLane(WorkerPool::Pinned("second", {Cores()[1]}));
  }

  const std::shared_ptr<Crew> crew_ = Crew::Make();
  std::shared_ptr<CrewLane> first_;
  std::shared_ptr<CrewLane> second_;
};

TEST_F(LendingTest, ALaneWithoutACallerLendsItsCores) {
  const CrewLane::Inside inside(first_);
  EXPECT_EQ(ThreadsOf(*first_, 2, 20s).size(), 2U);
}

TEST_F(LendingTest, ALaneThatIsKeptLendsNothing) {
  const CrewLane::Inside inside(first_);
  {
    const CrewLane::Kept kept(second_);
    EXPECT_EQ(ThreadsOf(*first_, 2, 100ms).size(), 1U);
  }
  EXPECT_EQ(ThreadsOf(*first_, 2, 20s).size(), 2U);
}

TEST_F(LendingTest, ALaneAtWorkLendsNothing) {
  std::atomic<bool> at_work{false};
  std::atomic<bool> stop{false};
  std::thread other([&] {
    const CrewLane::Inside inside(second_);
    at_work = true;
    while (!stop) std::this_thread::sleep_for(1ms);
  });
  while (!at_work) std::this_thread::yield();
  {
    const CrewLane::Inside inside(first_);
    EXPECT_EQ(ThreadsOf(*first_, 2, 100ms).size(), 1U);
  }
  stop = true;
  other.join();
}

TEST_F(LendingTest, ALaneThatRestsLendsItsCoresAndTakesThemBack) {
  std::atomic<int> phase{0};
  std::thread other([&] {
    const CrewLane::Inside inside(second_);
    {
      const CrewLane::Rest rest;
      phase = 1;
      while (phase == 1) std::this_thread::sleep_for(1ms);
    }
    phase = 3;
    while (phase == 3) std::this_thread::sleep_for(1ms);
  });
  while (phase != 1) std::this_thread::yield();
  const CrewLane::Inside inside(first_);
  EXPECT_EQ(ThreadsOf(*first_, 2, 20s).size(), 2U);
  phase = 2;
  while (phase != 3) std::this_thread::yield();
  EXPECT_EQ(ThreadsOf(*first_, 2, 100ms).size(), 1U);
  phase = 4;
  other.join();
}

TEST_F(LendingTest, ACoreThatTheLaneHasItselfIsNotBorrowed) {
  const auto third = crew_->AddLane(WorkerPool::Pinned("third", {Cores()[0]}));
  second_.reset();
  const CrewLane::Inside inside(first_);
  EXPECT_EQ(ThreadsOf(*first_, 2, 100ms).size(), 1U);
}

TEST_F(LendingTest, BothLanesAtOnce) {
  std::atomic<std::size_t> sum{0};
  const auto work = [&](const std::shared_ptr<CrewLane>& lane) {
    const CrewLane::Inside inside(lane);
    for (int round = 0; round < 3000; ++round) {
      Parallel(*lane, 5, [&](std::size_t i) { sum += i; });
      if (round % 50 == 0) {
        const CrewLane::Rest rest;
        std::this_thread::sleep_for(100us);
      }
    }
  };
  std::thread other([&] { work(second_); });
  work(first_);
  other.join();
  EXPECT_EQ(sum, 2U * 3000U * 10U);
}

TEST_F(LendingTest, LanesComeAndGoWhileOthersWork) {
  std::atomic<bool> stop{false};
  std::thread other([&] {
    const CrewLane::Inside inside(first_);
    while (!stop) {
      std::atomic<int> done{0};
      Parallel(*first_, 8, [&](std::size_t) { ++done; });
      ASSERT_EQ(done, 8);
    }
  });
  for (int round = 0; round < 30; ++round) {
    second_.reset();
    second_ = crew_->AddLane(WorkerPool::Pinned("second", {Cores()[1]}));
  }
  stop = true;
  other.join();
}

TEST(CrewTest, HasRoomForSoManyLanes) {
  const auto crew = Crew::Make();
  std::vector<std::shared_ptr<CrewLane>> lanes;
  for (std::size_t i = 0; i < Crew::kMostLanes; ++i) {
    lanes.push_back(crew->AddLane(WorkerPool::Unpinned("lane", 1)));
  }
  EXPECT_THROW(crew->AddLane(WorkerPool::Unpinned("lane", 1)), Error);
  lanes.pop_back();
  EXPECT_NE(crew->AddLane(WorkerPool::Unpinned("lane", 1)), nullptr);
}

#if defined(__GLIBC__)
TEST(CrewTest, SaysWhenThereAreNoThreads) {
  const auto crew = Crew::Make();
  {
    const NoThreads none;
    EXPECT_THROW(crew->AddLane(WorkerPool::Unpinned("lane", 2)), Error);
  }
  const auto lane = crew->AddLane(WorkerPool::Unpinned("lane", 2));
  const CrewLane::Inside inside(lane);
  EXPECT_EQ(ThreadsOf(*lane, 2, 20s).size(), 2U);
}
#endif

}  // namespace
}  // namespace as2d
