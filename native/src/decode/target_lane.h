// The target lane: commits tokens, window by window. Private to the run's sources.
#pragma once

#include <cstddef>
#include <vector>

#include "lane.h"
#include "run_state.h"

namespace as2d {

/// Decodes windows with one target and one strategy. Used by the lane's own thread.
class TargetDecoder {
 public:
  TargetDecoder(TargetModel& target, Strategy& strategy, bool exact, Counters& counters,
                EventQueue& events);

  ~TargetDecoder();
  TargetDecoder(const TargetDecoder&) = delete;
  TargetDecoder& operator=(const TargetDecoder&) = delete;

  /// Decodes one window to its end and reports it; on Cancelled, what is committed stands, and it
  /// returns false. Throws what the target throws, but for Cancelled.
  bool DecodeWindow(WindowTask& task);

 private:
  FinishReason Decode(const Window& window);
  FinishReason DecodeUpToLimit(const Window& window);
  bool Step(const Window& window, FinishReason* reason);
  void Commit(const Window& window, std::vector<TokenId> tokens);

  TargetModel& target_;
  Strategy& strategy_;
  const bool pad_;
  Counters& counters_;
  EventQueue& events_;
  ActivityReporter activity_;
  std::vector<TokenId> committed_;  // of the current window
  std::size_t limit_ = 0;           // of their number
  std::vector<TokenId> rows_;
  std::vector<TokenId> next_;
};

}  // namespace as2d
