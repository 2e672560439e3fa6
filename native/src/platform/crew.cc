#include "as2d/platform/crew.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <system_error>
#include <utility>

#include "as2d/error.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace as2d {
namespace {

// Longer than what lies between two operators or two steps, short enough to cost an idle lane
// nothing.
constexpr std::chrono::microseconds kSpin{500};

thread_local CrewLane* current_lane = nullptr;

void Pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

}  // namespace

/// One helper thread.
struct Crew::Helper {
  std::size_t home = 0;  // its lane's board
  int slot = 0;
  int core = -1;  // -1: not pinned
  std::atomic<bool> asleep{false};
  std::atomic<bool> leave{false};
  std::atomic<std::uint32_t> signal{0};
  std::thread thread;

  void Wake() {
    ++signal;
    signal.notify_one();
  }
};

CrewLane::~CrewLane() { crew_->RemoveLane(board_); }

CrewLane* CrewLane::Current() { return current_lane; }

void CrewLane::Parallel(std::size_t count, Task task, void* context) {
  crew_->Parallel(crew_->boards_[board_], count, task, context);
}

CrewLane::Inside::Inside(std::shared_ptr<CrewLane> lane) : lane_(std::move(lane)) {
  current_lane = lane_.get();
  lane_->crew_->boards_[lane_->board_].busy = true;
}

CrewLane::Inside::~Inside() {
  lane_->crew_->boards_[lane_->board_].busy = false;
  current_lane = nullptr;
}

CrewLane::Rest::Rest() : lane_(current_lane) {
  if (lane_ != nullptr) lane_->crew_->boards_[lane_->board_].busy = false;
}

CrewLane::Rest::~Rest() {
  if (lane_ != nullptr) lane_->crew_->boards_[lane_->board_].busy = true;
}

CrewLane::Kept::Kept(std::shared_ptr<CrewLane> lane) : lane_(std::move(lane)) {
  lane_->crew_->boards_[lane_->board_].busy = true;
}

CrewLane::Kept::~Kept() { lane_->crew_->boards_[lane_->board_].busy = false; }

std::shared_ptr<Crew> Crew::Make() { return std::shared_ptr<Crew>(new Crew); }

Crew::Crew() = default;

Crew::~Crew() = default;  // lanes keep the crew, so there are none left

std::shared_ptr<CrewLane> Crew::AddLane(const std::shared_ptr<WorkerPool>& pool) {
  const std::lock_guard lock(mutex_);
  const auto board = std::ranges::find_if(boards_, [](const Board& b) { return !b.used; });
  if (board == boards_.end()) throw Error("there are as many lanes as there can be");
  while (board->inside != 0) Pause();  // a helper that looks at what the lane before left
  board->cores = CpuMask(pool->cores());
  const auto home = static_cast<std::size_t>(board - boards_.begin());
  try {
    for (int slot = 0; slot < pool->width(); ++slot) {
      // Slot 0 is the caller's: a helper there serves other lanes only, and those on pinned
      // threads.
      if (slot == 0 && pool->cores().empty()) continue;
      board->helpers.push_back(std::make_unique<Helper>());
      Helper* const helper = board->helpers.back().get();
      helper->home = home;
      helper->slot = slot;
      if (!pool->cores().empty()) helper->core = pool->cores()[static_cast<std::size_t>(slot)];
      helper->thread = pool->Start(slot, "h", [this, helper] { Help(*helper); });
    }
  } catch (const std::system_error& failure) {
    Dismiss(std::move(board->helpers));
    board->helpers.clear();
    throw Error("lane " + pool->name() + ": no more threads can be started (" +
                std::string(failure.what()) + ")");
  }
  board->used = true;
  return std::shared_ptr<CrewLane>(new CrewLane(shared_from_this(), home));
}

void Crew::RemoveLane(std::size_t index) {
  Board& board = boards_[index];
  std::vector<std::unique_ptr<Helper>> helpers;
  {
    const std::lock_guard lock(mutex_);
    helpers.swap(board.helpers);
  }
  Dismiss(std::move(helpers));
  const std::lock_guard lock(mutex_);
  board.used = false;
}

void Crew::Dismiss(std::vector<std::unique_ptr<Helper>> helpers) {
  for (const auto& helper : helpers) {
    helper->leave = true;
    helper->Wake();
  }
  for (const auto& helper : helpers) {
    if (helper->thread.joinable()) helper->thread.join();
  }
}

void Crew::Parallel(Board& board, std::size_t count, CrewLane::Task task, void* context) {
  if (count <= 1) {
    if (count == 1) task(context, 0);
    return;
  }
  board.task = task;
  board.context = context;
  board.count = count;
  board.next = 0;
  // Sequentially consistent, as all that decides who may enter: a helper that says it is inside and
  // then sees the board open is seen by the caller, who closes it and then looks inside.
  board.open = true;
  {
    const std::lock_guard lock(mutex_);
    for (Board& other : boards_) {
      for (const auto& helper : other.helpers) {
        if (MayHelp(*helper, board) && helper->asleep.exchange(false)) helper->Wake();
      }
    }
  }
  for (std::size_t i = board.next++; i < count; i = board.next++) task(context, i);
  board.open = false;
  while (board.inside != 0) Pause();
}

bool Crew::MayHelp(const Helper& helper, const Board& board) const {
  const Board& home = boards_[helper.home];
  if (&board == &home) return helper.slot > 0;
  return !home.busy && helper.core >= 0 && !board.cores.Empty() &&
         !board.cores.Contains(helper.core);
}

// Whether there is work on the board that the helper may do. Nothing but `open` may be looked at by
// who is not inside.
bool Crew::Wanted(const Helper& helper, Board& board) {
  if (!board.open) return false;
  ++board.inside;
  const bool wanted = board.open && MayHelp(helper, board);
  --board.inside;
  return wanted;
}

// Does tasks of the board as long as it may; false when there were none.
bool Crew::Join(const Helper& helper, Board& board) {
  if (!board.open) return false;
  bool worked = false;
  ++board.inside;
  if (board.open) {
    while (MayHelp(helper, board)) {
      const std::size_t i = board.next++;
      if (i >= board.count) break;
      board.task(board.context, i);
      worked = true;
    }
  }
  --board.inside;
  return worked;
}

void Crew::Help(Helper& helper) {
  auto last = std::chrono::steady_clock::now();
  while (!helper.leave) {
    const std::uint32_t seen = helper.signal;
    bool worked = false;
    for (Board& board : boards_) worked = Join(helper, board) || worked;
    const auto now = std::chrono::steady_clock::now();
    if (worked) last = now;
    if (now - last < kSpin) {
      Pause();
      continue;
    }
    helper.asleep = true;
    // Whoever opened a board before this is seen here; whoever opens one after it sees us asleep.
    const bool wanted =
        std::ranges::any_of(boards_, [&](Board& board) { return Wanted(helper, board); });
    if (!wanted && !helper.leave) helper.signal.wait(seen);
    helper.asleep = false;
    last = std::chrono::steady_clock::now();
  }
}

}  // namespace as2d
