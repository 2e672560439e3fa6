// The lanes' own threads, and how idle cores of one lane help the other.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "as2d/platform/cpu_mask.h"
#include "as2d/platform/worker_pool.h"

namespace as2d {

class Crew;

/// One lane's place in the crew: a caller, which hands out the tasks of one piece of work after the
/// other, and a helper on each of the lane's cores.
class CrewLane {
 public:
  using Task = void (*)(void* context, std::size_t index);

  ~CrewLane();
  CrewLane(const CrewLane&) = delete;
  CrewLane& operator=(const CrewLane&) = delete;

  /// Calls task(context, i) for every i in [0, count), on the calling thread and on helpers that
  /// are free, in no order. Returns when all are done. Never waits for a helper to come, only for
  /// those that are in the middle of a task. The task must not throw. Only the lane's caller may
  /// call this, and not from within a task.
  void Parallel(std::size_t count, Task task, void* context);

  /// The lane that the calling thread is in, or null.
  static CrewLane* Current();

  /// While it lives, the constructing thread is the lane's caller, at work. Only one at a time.
  class Inside {
   public:
    explicit Inside(std::shared_ptr<CrewLane> lane);
    ~Inside();
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    const std::shared_ptr<CrewLane> lane_;
  };

  /// While it lives, the calling thread waits for something, and its lane's cores may help others.
  /// Nothing for a thread that is in no lane.
  class Rest {
   public:
    Rest();
    ~Rest();
    Rest(const Rest&) = delete;
    Rest& operator=(const Rest&) = delete;

   private:
    CrewLane* const lane_;
  };

  /// While it lives, the cores of a lane without a caller help no other.
  class Kept {
   public:
    explicit Kept(std::shared_ptr<CrewLane> lane);
    ~Kept();
    Kept(const Kept&) = delete;
    Kept& operator=(const Kept&) = delete;

   private:
    const std::shared_ptr<CrewLane> lane_;
  };

 private:
  friend class Crew;
  CrewLane(std::shared_ptr<Crew> crew, std::size_t board) : crew_(std::move(crew)), board_(board) {}

  const std::shared_ptr<Crew> crew_;
  const std::size_t board_;
};

/// Helpers of all lanes. A helper serves its own lane; while that lane rests, it serves the others
/// on cores that they do not have themselves: a lane becomes wider for as long as another has
/// nothing to do, from one task to the next. A lane that got no caller yet, or none any more,
/// rests. A helper that finds no work spins for a short time, since the next piece usually comes
/// within microseconds, and then sleeps.
///
/// Lanes on unpinned threads neither lend cores nor borrow them.
class Crew : public std::enable_shared_from_this<Crew> {
 public:
  static constexpr std::size_t kMostLanes = 8;

  static std::shared_ptr<Crew> Make();
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  /// A new lane on the threads of `pool`, whose slot 0 is the caller's. Starts its helpers. Throws
  /// Error when there are kMostLanes already, or when no thread can be started.
  std::shared_ptr<CrewLane> AddLane(const std::shared_ptr<WorkerPool>& pool);

 private:
  friend class CrewLane;

  struct Helper;

  /// What a lane's caller hands out.
  struct alignas(64) Board {
    bool used = false;
    std::atomic<bool> busy{false};  // the caller is at work
    CpuMask cores;                  // of the lane
    std::atomic<bool> open{false};  // there are tasks
    std::atomic<int> inside{0};     // helpers that look at the tasks
    CrewLane::Task task = nullptr;  // these three change only while closed and nobody is inside
    void* context = nullptr;
    std::size_t count = 0;
    alignas(64) std::atomic<std::size_t> next{0};
    std::vector<std::unique_ptr<Helper>> helpers;
  };

  Crew();
  void RemoveLane(std::size_t board);
  static void Dismiss(std::vector<std::unique_ptr<Helper>> helpers);
  void Parallel(Board& board, std::size_t count, CrewLane::Task task, void* context);
  bool MayHelp(const Helper& helper, const Board& board) const;
  bool Wanted(const Helper& helper, Board& board);
  bool Join(const Helper& helper, Board& board);
  void Help(Helper& helper);

  std::array<Board, kMostLanes> boards_;
  std::mutex mutex_;  // of `used` and `helpers`
};

}  // namespace as2d
