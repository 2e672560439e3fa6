// The target lane: commits tokens, window by window. Private to the run's sources.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "lane.h"
#include "run_state.h"

namespace as2d {

/// Decodes windows with one target, as many at a time as there are strategies, in one batch. Used
/// by the lane's own thread.
class TargetDecoder {
 public:
  /// One strategy for each window in the batch; at most target.slots().
  TargetDecoder(TargetModel& target, std::vector<std::unique_ptr<Strategy>> strategies,
                DraftChannel* channel, const RunOptions& options, Counters& counters,
                EventQueue& events);

  ~TargetDecoder();
  TargetDecoder(const TargetDecoder&) = delete;
  TargetDecoder& operator=(const TargetDecoder&) = delete;

  /// Decodes windows until there are no more, and reports each. When the target is cancelled, what
  /// is committed stands, and it returns false. Throws what the target throws, but for Cancelled.
  bool DecodeAll(WindowList& windows);

 private:
  /// A window in the batch.
  struct Active {
    std::unique_ptr<Strategy> strategy;
    std::shared_ptr<WindowTask> task;  // null: the slot is free
    std::chrono::steady_clock::time_point start;
    std::vector<TokenId> committed;
    std::size_t limit = 0;  // of their number
    bool finished = false;
    FinishReason reason = FinishReason::kCancelled;
    CandidateRuns runs;          // of the current step; a run may have been cut to nothing
    std::size_t candidates = 0;  // in all of them
    std::size_t first_row = 0;   // of the window in the current step ...
    std::size_t past = 0;        // ... and the position of that row

    bool busy() const { return task != nullptr; }
  };

  bool MayBegin() const;
  bool Idle() const;
  void Begin(std::size_t slot, std::shared_ptr<WindowTask> task);
  void BeginText(std::size_t slot);
  void TellEncoding(std::int64_t window);
  void Step();
  void Propose(std::size_t slot);
  void AddRows(std::size_t slot);
  void Judge(std::size_t slot);
  void Commit(Active& active, std::vector<TokenId> tokens);
  void Finish(Active& active, FinishReason reason);
  void Close(Active& active, WindowList& windows);

  TargetModel& target_;
  DraftChannel* const channel_;
  const bool pad_;
  const std::size_t batch_apart_;
  const bool tell_encodings_;
  Counters& counters_;
  EventQueue& events_;
  ActivityReporter activity_;
  std::vector<Active> batch_;  // by slot
  std::vector<Row> rows_;
  std::vector<TokenId> next_;
  std::vector<TokenId> run_next_;
};

}  // namespace as2d
