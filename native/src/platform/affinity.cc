#include "as2d/platform/affinity.h"

#include <array>
#include <cerrno>
#include <system_error>

#if defined(__linux__)  // Android as well.
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__APPLE__)
#include <pthread.h>
#endif

namespace as2d {
namespace {

constexpr std::size_t kNameBytes = 15;  // TASK_COMM_LEN without the final zero.

#if defined(__linux__)
// The kernel's masks are arrays of long; the system calls are used directly because bionic's
// wrappers for threads came late and glibc's cpu_set_t macros add nothing.
using Word = unsigned long;
constexpr int kWordBits = static_cast<int>(8 * sizeof(Word));
// The kernel refuses to report into a buffer smaller than its own masks, which may be built for
// more cores than CpuMask holds: 8192 is the largest configuration of Linux.
constexpr std::size_t kReportWords = 8192 / kWordBits;
constexpr std::size_t kMaskWords = CpuMask::kMaxCores / kWordBits;
#endif

}  // namespace

#if defined(__linux__)

bool CanPinThreads() { return true; }

namespace {

std::optional<CpuMask> AffinityOf(pid_t thread) {
  std::array<Word, kReportWords> words{};
  // The raw call returns the number of bytes that it wrote.
  if (syscall(SYS_sched_getaffinity, thread, sizeof(words), words.data()) < 0) return std::nullopt;
  CpuMask mask;
  for (int core = 0; core < CpuMask::kMaxCores; ++core) {
    const Word word = words[static_cast<std::size_t>(core / kWordBits)];
    if ((word >> (core % kWordBits)) & 1) mask.Add(core);
  }
  return mask;
}

}  // namespace

std::optional<CpuMask> ReadAffinity() { return AffinityOf(0); }

std::optional<CpuMask> ReadProcessAffinity() { return AffinityOf(getpid()); }

bool SetAffinity(const CpuMask& cores, std::string* error) {
  std::array<Word, kMaskWords> words{};
  for (const int core : cores.Cores()) {
    words[static_cast<std::size_t>(core / kWordBits)] |= Word{1} << (core % kWordBits);
  }
  if (syscall(SYS_sched_setaffinity, 0, sizeof(words), words.data()) == 0) return true;
  if (error) *error = std::generic_category().message(errno);
  return false;
}

bool SetThreadName(std::string_view name) {
  const std::string cut(name.substr(0, kNameBytes));
  return prctl(PR_SET_NAME, cut.c_str(), 0, 0, 0) == 0;
}

std::string ThreadName() {
  std::array<char, kNameBytes + 1> name{};
  if (prctl(PR_GET_NAME, name.data(), 0, 0, 0) != 0) return {};
  return name.data();
}

std::int64_t ThreadId() { return static_cast<std::int64_t>(syscall(SYS_gettid)); }

#else  // No call binds a thread to a core: macOS offers hints only, and none on Apple silicon.

bool CanPinThreads() { return false; }

std::optional<CpuMask> ReadAffinity() { return std::nullopt; }
std::optional<CpuMask> ReadProcessAffinity() { return std::nullopt; }

bool SetAffinity(const CpuMask&, std::string* error) {
  if (error) *error = "this platform cannot bind threads to cores";
  return false;
}

#if defined(__APPLE__)

bool SetThreadName(std::string_view name) {
  const std::string cut(name.substr(0, kNameBytes));
  return pthread_setname_np(cut.c_str()) == 0;
}

std::string ThreadName() {
  std::array<char, 64> name{};
  if (pthread_getname_np(pthread_self(), name.data(), name.size()) != 0) return {};
  return name.data();
}

std::int64_t ThreadId() {
  std::uint64_t id = 0;
  return pthread_threadid_np(nullptr, &id) == 0 ? static_cast<std::int64_t>(id) : 0;
}

#else

bool SetThreadName(std::string_view) { return false; }
std::string ThreadName() { return {}; }
std::int64_t ThreadId() { return 0; }

#endif
#endif

}  // namespace as2d
