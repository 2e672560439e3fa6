// The target lane: commits tokens, window by window. Private to the run's sources.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <vector>

#include "as2d/decode/draft_gate.h"
#include "lane.h"
#include "run_state.h"
#include "span_meter.h"

namespace as2d {

/// Decodes windows with one target, as many at a time as there are strategies, in one batch. Used
/// by the lane's own thread.
class TargetDecoder {
 public:
  /// One strategy for each window in the batch; at most target.slots(). `drafter` is null where
  /// there is none.
  TargetDecoder(TargetModel& target, const Drafter* drafter,
                std::vector<std::unique_ptr<Strategy>> strategies, DraftChannel* channel,
                WindowList& windows, const RunOptions& options, Counters& counters,
                EventQueue& events);

  ~TargetDecoder();
  TargetDecoder(const TargetDecoder&) = delete;
  TargetDecoder& operator=(const TargetDecoder&) = delete;

  /// Decodes windows until there are no more, and reports each. When the target is cancelled, what
  /// is committed stands, and it returns false. Throws what the target throws, but for Cancelled.
  bool DecodeAll();

 private:
  /// A place in the batch, and the window in it.
  struct Active {
    std::unique_ptr<Strategy> strategy;
    bool drafting = false;             // it has begun the window
    int slot = 0;                      // of the target
    std::shared_ptr<WindowTask> task;  // null: the place is free
    std::chrono::steady_clock::time_point start;
    std::vector<TokenId> committed;
    ChoiceRules rules;           // after what is committed
    double log_probability = 0;  // of what is committed, and the end
    double no_speech = 0;
    std::vector<float> times;
    std::size_t limit = 0;  // of their number
    bool finished = false;
    FinishReason reason = FinishReason::kCancelled;
    CandidateRuns offered;  // of the current step; a run may have been cut to nothing
    CandidateRuns runs;     // those, each with `echo` in front where there is one
    TokenId echo = Choice::kEnd;
    std::array<std::vector<TokenId>, CandidateRuns::kMost> echoed;  // what is in `runs` then
    std::size_t candidates = 0;                                     // in all of them
    std::size_t first_row = 0;  // of the window in the current step ...
    std::size_t past = 0;       // ... and the position of that row

    bool busy() const { return task != nullptr; }
  };

  /// A window encoded before there was a place for it in the batch.
  struct Ahead {
    std::shared_ptr<WindowTask> task;
    std::chrono::steady_clock::duration time{};  // that it took
    std::exception_ptr failure;                  // told once it is the window's turn
  };

  bool MayBegin() const;
  bool Idle() const;
  bool Take(Active& active);
  void Begin(Active& active);
  void BeginDraft(Active& active);
  void BeginText(Active& active);
  void Encode(WindowTask& task, int slot);
  void EncodeAhead();
  void TellEncoding(std::int64_t window);
  void Step();
  void Propose(Active& active);
  void Echo(Active& active);
  void AddRows(Active& active);
  std::size_t Judge(Active& active);
  void Commit(Active& active, std::vector<TokenId> tokens);
  void TellTimes(Active& active);
  void Finish(Active& active, FinishReason reason);
  void Close(Active& active);
  void ReviewDrafting(std::int64_t window);

  TargetModel& target_;
  const Drafter* const drafter_;
  DraftChannel* const channel_;
  WindowList& windows_;
  const bool pad_;
  const std::size_t batch_apart_;
  const bool tell_encodings_;
  Counters& counters_;
  EventQueue& events_;
  ActivityReporter activity_;
  std::optional<DraftGate> gate_;  // none where drafting is not to be dropped
  SpanMeter meter_;
  std::vector<Active> batch_;
  std::optional<int> spare_slot_;  // for the window that is encoded ahead, if any is
  std::optional<Ahead> ahead_;
  std::vector<Row> rows_;
  std::vector<TokenId> next_;
  std::vector<float> log_probability_;
  std::vector<TokenId> run_next_;
  std::vector<std::size_t> others_;  // candidates of the other windows
};

}  // namespace as2d
