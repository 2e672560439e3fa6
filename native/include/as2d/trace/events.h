// What a run tells while it goes on, in order.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "as2d/decode/window.h"
#include "as2d/text/vocabulary.h"

namespace as2d {

enum class LaneName : std::uint8_t { kTarget, kDraft };

enum class Activity : std::uint8_t {
  kIdle,
  kEncoding,
  kPrompting,
  kVerifying,  ///< a step with candidates
  kAlone,      ///< a step without
  kDrafting,
  kDone,
};

/// "encoding" and so on.
const char* NameOf(Activity activity);
/// "target" or "draft".
const char* NameOf(LaneName lane);

struct Event {
  enum class Kind : std::uint8_t {
    kEncoded,          ///< window, encoding, count (width of a line); only if asked for
    kTokensCommitted,  ///< window, tokens
    kWindowFinished,   ///< window, tokens (all of it), reason, duration, and what follows that
    kDraftAdvanced,    ///< window, count (published so far), finished
    kLaneChanged,      ///< lane, activity, window
    kDraftingChanged,  ///< window (the last one over), finished: drafting goes on; message: why
    kDrafterLost,      ///< message: why; the target goes on alone
    kRunFinished,      ///< the last event; message: error, or empty; finished: not cancelled
  };

  Kind kind{};
  double seconds = 0;  ///< since the run began
  std::int64_t window = -1;
  std::vector<TokenId> tokens;
  FinishReason reason = FinishReason::kEnd;
  double duration = 0;          ///< seconds that the target lane spent on the window
  double log_probability = 0;   ///< of all tokens, and of the end where the target said so
  double no_speech = 0;         ///< see FirstToken
  std::vector<float> times;     ///< see TargetModel::TokenTimes; only if asked for
  std::vector<float> encoding;  ///< see TargetModel
  /// What a drafter that follows its own history had said of the window by then, as the target's
  /// tokens, without the end.
  std::vector<TokenId> draft;
  std::int64_t count = 0;
  bool finished = false;
  LaneName lane = LaneName::kTarget;
  Activity activity = Activity::kIdle;
  std::string message;
};

/// Both lanes write, one reader takes. A lane holds the lock for one append, the reader for one
/// swap, so neither waits for the other's work. Never full: a reader that stops reading is the
/// owner's to notice.
class EventQueue {
 public:
  EventQueue() : start_(std::chrono::steady_clock::now()) {}

  /// Stamps the event with the time since construction and appends it. What comes after
  /// kRunFinished is dropped.
  void Push(Event event);

  /// Takes all events; waits up to `timeout` for the first. Empty on timeout.
  std::vector<Event> Take(std::chrono::duration<double> timeout);

  double SecondsSinceStart() const;

 private:
  const std::chrono::steady_clock::time_point start_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<Event> events_;
  bool closed_ = false;
};

}  // namespace as2d
