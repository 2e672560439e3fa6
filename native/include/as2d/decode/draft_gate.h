// Whether drafting pays at all.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace as2d {

/// What the target lane did between the ends of two windows.
///
/// Windows overlap, in a batch or when one is encoded ahead, so the time from a window's beginning
/// to its end says little of what it cost. The lane's own time between two ends, and what was
/// encoded and committed in it, whichever windows it was of, add up to the whole.
struct LaneSpan {
  double seconds = 0;         ///< of the lane's time, waiting for windows not counted
  double encode_seconds = 0;  ///< of that, on the encoder
  double audio = 0;           ///< seconds of audio that were encoded
  double tokens = 0;          ///< committed, end tokens counted
  double predicted = 0;       ///< seconds that the costs of the target alone make of it; 0: unknown
};

/// Decides window by window whether the draft lane works: it compares the lane's time with drafts
/// and without them, each as a multiple of what the target alone should take. That makes windows
/// comparable whatever their audio and text; and nothing but time decides, so what is committed
/// does not hang on it.
///
/// Drafting is on in the beginning. It is dropped when it has cost more than it gained over two
/// windows or more, and probed again after 4, 8, 16 ... windows. What the target alone should take
/// comes of costs that were measured before the run; without those some window must be decoded
/// without drafts, for comparison, and a run of few windows is not worth that. With them it is done
/// only where the gain is so small that they may be wrong about it.
class DraftGate {
 public:
  /// `costs_known`: spans come with predictions.
  explicit DraftGate(bool costs_known);

  /// Whether windows that begin now are drafted.
  bool open() const { return open_; }

  /// A window is over. `span`: the time since the one before it, unless windows with and without
  /// drafts were under way in it. Returns what was decided, and why, if anything was.
  std::optional<std::string> WindowFinished(const std::optional<LaneSpan>& span);

 private:
  /// The recent spans of one kind; the older, the less they count.
  struct Recent {
    LaneSpan sum;
    void Add(const LaneSpan& span);
  };

  enum class State {
    kDrafting,   ///< open
    kProbing,    ///< open again, to see
    kComparing,  ///< shut to see how the target alone does
    kDropped,    ///< shut
  };

  bool AloneKnown() const;
  double Multiple(const Recent& recent) const;
  double Alone() const;
  bool Pays() const;
  std::string Enter(State state);
  std::string Figures() const;

  const bool costs_known_;
  bool open_ = true;
  State state_ = State::kDrafting;
  int windows_ = 0;  // since the state was entered ...
  int fresh_ = 0;    // ... and spans known of them
  int probe_after_;
  int compare_after_;
  Recent drafted_;
  Recent alone_;
};

}  // namespace as2d
