#include "as2d/platform/worker_pool.h"

#include <algorithm>
#include <future>
#include <thread>
#include <utility>

#include "as2d/error.h"
#include "as2d/platform/affinity.h"

namespace as2d {
namespace {

// Room that the kernel's 15 bytes leave for "-<slot>" with up to three digits, or "-h<slot>" with
// two.
constexpr std::size_t kPrefixBytes = 11;

}  // namespace

std::shared_ptr<WorkerPool> WorkerPool::Pinned(std::string name, std::vector<int> cores) {
  if (cores.empty()) throw Error("lane " + name + ": no cores given");
  CpuMask seen;
  for (const int core : cores) {
    const std::string text = "lane " + name + ": core " + std::to_string(core);
    if (seen.Contains(core)) throw Error(text + " is given twice");
    if (!seen.Add(core)) {
      throw Error(text + " is out of range; ids go from 0 to " +
                  std::to_string(CpuMask::kMaxCores - 1));
    }
  }
  const int width = static_cast<int>(cores.size());
  return std::shared_ptr<WorkerPool>(new WorkerPool(std::move(name), std::move(cores), width));
}

std::shared_ptr<WorkerPool> WorkerPool::Unpinned(std::string name, int width) {
  if (width < 1) throw Error("lane " + name + ": needs at least one thread");
  return std::shared_ptr<WorkerPool>(new WorkerPool(std::move(name), {}, width));
}

WorkerPool::WorkerPool(std::string name, std::vector<int> cores, int width)
    : name_(std::move(name)), cores_(std::move(cores)), width_(width) {}

WorkerPool::~WorkerPool() = default;

std::vector<WorkerReport> WorkerPool::Report() const {
  const std::lock_guard lock(mutex_);
  std::vector<WorkerReport> report(callers_.begin(), callers_.end());
  report.insert(report.end(), workers_.begin(), workers_.end());
  return report;
}

int WorkerPool::live_workers() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(workers_.size());
}

int WorkerPool::created_workers() const {
  const std::lock_guard lock(mutex_);
  return created_;
}

WorkerReport WorkerPool::Place(int slot, const std::string& mark) const {
  WorkerReport report;
  report.name = name_.substr(0, kPrefixBytes) + '-' + mark + std::to_string(slot);
  SetThreadName(report.name);
  report.thread_id = ThreadId();
  if (!cores_.empty()) {
    report.requested.Add(cores_[static_cast<std::size_t>(slot) % cores_.size()]);
    SetAffinity(report.requested, &report.refused);
  }
  report.actual = ReadAffinity().value_or(CpuMask());
  return report;
}

WorkerPool::Entry WorkerPool::Enter(std::list<WorkerReport>& where, WorkerReport report) {
  const std::lock_guard lock(mutex_);
  if (&where == &workers_) ++created_;
  return where.insert(where.end(), std::move(report));
}

void WorkerPool::Leave(std::list<WorkerReport>& where, Entry entry) {
  const std::lock_guard lock(mutex_);
  where.erase(entry);
}

WorkerPool::CallerPin WorkerPool::PinCaller() {
  CallerPin pin;
  pin.name_before_ = ThreadName();
  pin.mask_before_ = ReadAffinity().value_or(CpuMask());
  pin.entry_ = Enter(callers_, Place(0, ""));
  pin.pool_ = shared_from_this();
  return pin;
}

WorkerPool::CallerPin::CallerPin(CallerPin&& other) noexcept
    : pool_(std::move(other.pool_)),
      entry_(other.entry_),
      mask_before_(other.mask_before_),
      name_before_(std::move(other.name_before_)) {}

WorkerPool::CallerPin::~CallerPin() {
  if (!pool_) return;
  // A core of the old mask may have gone offline meanwhile; nothing better than to stay pinned
  // then.
  if (!pool_->cores_.empty() && !mask_before_.Empty()) SetAffinity(mask_before_);
  SetThreadName(name_before_);
  pool_->Leave(pool_->callers_, entry_);
}

std::thread WorkerPool::Start(int slot, const std::string& mark, std::function<void()> work) {
  std::promise<void> placed;
  std::future<void> is_placed = placed.get_future();
  std::thread thread([pool = shared_from_this(), slot, mark, work = std::move(work),
                      placed = std::move(placed)]() mutable {
    const Entry entry = pool->Enter(pool->workers_, pool->Place(slot, mark));
    placed.set_value();
    work();
    pool->Leave(pool->workers_, entry);
  });
  is_placed.wait();
  return thread;
}

SessionWorkers::SessionWorkers(std::shared_ptr<WorkerPool> pool) : pool_(std::move(pool)) {}

void* SessionWorkers::Create(WorkerFunction work, void* argument) noexcept {
  try {
    const int slot = next_slot_;
    auto worker =
        std::make_unique<std::thread>(pool_->Start(slot, "", [work, argument] { work(argument); }));
    next_slot_ = slot + 1 < pool_->width() ? slot + 1 : 1;
    return worker.release();
  } catch (...) {
    // No thread or no memory; the runtime turns null into an error of its own.
    return nullptr;
  }
}

void SessionWorkers::Join(void* worker) noexcept {
  const std::unique_ptr<std::thread> owned(static_cast<std::thread*>(worker));
  owned->join();
}

}  // namespace as2d
