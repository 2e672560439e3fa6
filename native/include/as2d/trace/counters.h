// What a run has done, in numbers that any thread may read while it goes on.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace as2d {

/// Candidates in one step are counted up to this; more count as this many.
inline constexpr std::size_t kMaxCountedCandidates = 64;

/// A number that one thread adds to and others read; no order is promised between two of them.
class Counter {
 public:
  void Add(std::int64_t amount) { value_.fetch_add(amount, std::memory_order_relaxed); }
  std::int64_t Get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> value_{0};
};

/// Wall time spent in a phase, in nanoseconds.
struct PhaseTimes {
  Counter encode;        ///< target lane: encoder
  Counter prompt;        ///< target lane: prompt step
  Counter decode;        ///< target lane: verify and alone steps
  Counter draft_encode;  ///< draft lane: encoder
  Counter draft_decode;  ///< draft lane: steps
};

struct Counters {
  Counter windows;    ///< finished by the target, not given up
  Counter committed;  ///< tokens committed, end tokens not counted
  /// steps by the number of candidates in them; [0] counts the alone steps
  std::array<Counter, kMaxCountedCandidates + 1> steps;
  Counter proposed;      ///< candidates verified
  Counter accepted;      ///< candidates that were the target's own choice, end tokens included
  Counter realignments;  ///< times that the aligner moved to a place other than the next token
  Counter drafted;       ///< draft tokens published, in the target's vocabulary
  Counter stale_drafts;  ///< draft tokens never proposed before their window was over
  Counter lead_total;    ///< sum over verify steps of the draft tokens ready after the position
  PhaseTimes nanoseconds;
};

}  // namespace as2d
