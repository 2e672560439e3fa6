// How strategies that couple the lanes ask the draft lane for tokens.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "as2d/decode/window.h"
#include "as2d/text/vocabulary.h"

namespace as2d {

/// What the drafter is to continue. Tokens are in the target's vocabulary.
struct DraftRequest {
  std::shared_ptr<const Window> window;
  std::span<const float> encoding = {};  ///< see DraftModel::Begin; valid as long as `window`
  std::vector<TokenId> history;          ///< the window's text, from its first token
  std::size_t count = 0;  ///< tokens wanted; with 0 the drafter only encodes the window
  /// Stop when the product of the drafter's confidences falls below this; 0 never stops.
  float least_confidence = 0;
  /// Tell the tokens as they come, until nobody wants them any more (see TakeTold).
  bool tell = false;
};

/// What the drafter says after the history: at most `count` tokens, the end token last where it
/// ends.
struct DraftReply {
  std::vector<TokenId> tokens;
};

/// One request at a time from the target lane to the draft lane, and the reply to it. Unlike a
/// DraftStream this makes each lane wait for the other, which is what coupling means; unless the
/// tokens are told as they come.
class DraftChannel {
 public:
  /// `patience`: how long Wait waits for one reply before it takes the drafter for dead.
  explicit DraftChannel(std::chrono::duration<double> patience) : patience_(patience) {}
  DraftChannel(const DraftChannel&) = delete;
  DraftChannel& operator=(const DraftChannel&) = delete;

  /// Target lane: hands a request over; never blocks. The reply before it must have been waited
  /// for, or is given up if it is one that is told. Does nothing once closed.
  void Ask(DraftRequest request);

  /// Target lane: what was told in reply to the last request since this was last called. Never
  /// blocks.
  std::vector<TokenId> TakeTold();

  /// Target lane: nothing more is wanted of the last request. Never blocks.
  void Forget();

  /// Target lane: blocks for the reply to the last request. None once closed, or when it does not
  /// come in time, which closes it.
  std::optional<DraftReply> Wait();

  /// Draft lane: blocks for a request. None when there will be none.
  std::optional<DraftRequest> Next();

  /// Draft lane: tells a part of the reply. False once nobody wants the rest.
  bool Tell(std::span<const TokenId> tokens);

  /// Draft lane: answers the request. Does nothing once closed: a reply that comes too late must
  /// not be taken for the next one.
  void Answer(DraftReply reply);

  /// Any thread: nobody waits from now on.
  void Close();

  /// True once a reply did not come in time.
  bool timed_out() const;

 private:
  const std::chrono::duration<double> patience_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<DraftRequest> request_;
  std::optional<DraftReply> reply_;
  std::vector<TokenId> told_;
  bool forgotten_ = false;
  bool closed_ = false;
  bool timed_out_ = false;
};

}  // namespace as2d
