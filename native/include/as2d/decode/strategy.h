// Where the candidates of a step come from. Strategies differ in this alone: the target lane, the
// verifier and the kernels are the same for all of them.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>

#include "as2d/decode/draft_channel.h"
#include "as2d/decode/draft_stream.h"
#include "as2d/decode/window.h"
#include "as2d/text/vocabulary.h"

namespace as2d {

/// The candidates of one step: runs of tokens, each of which could come after the committed prefix.
class CandidateRuns {
 public:
  static constexpr std::size_t kMost = 4;

  void Clear() { size_ = 0; }
  /// Appends a run, which must stay valid until the step is over. Does nothing with an empty run or
  /// once there are kMost.
  void Add(std::span<const TokenId> run) {
    if (!run.empty() && size_ < kMost) runs_[size_++] = run;
  }

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  std::span<const TokenId> operator[](std::size_t run) const { return runs_[run]; }
  std::span<const TokenId>& operator[](std::size_t run) { return runs_[run]; }
  std::span<const std::span<const TokenId>> runs() const { return std::span(runs_).first(size_); }

 private:
  std::array<std::span<const TokenId>, kMost> runs_;
  std::size_t size_ = 0;
};

/// What there is to draw candidates from in one window.
struct DraftSource {
  std::shared_ptr<const Window> window;
  /// For a drafter that does as it is told, where it needs it; valid as long as `window`.
  std::span<const float> encoding = {};
  /// What a drafter that follows its own history publishes; it outlives the window. Null where the
  /// drafter does as it is told; nothing comes without a drafter.
  const DraftStream* stream = nullptr;
  /// A drafter that does as it is told. Null without one.
  DraftChannel* channel = nullptr;
};

/// Called by the target lane only. One object serves one window at a time.
class Strategy {
 public:
  virtual ~Strategy() = default;

  virtual void BeginWindow(const DraftSource& source) = 0;

  /// The committed prefix grew by `tokens`.
  virtual void Committed(std::span<const TokenId> tokens) = 0;

  /// What goes into the next step beside the window, where there is a batch: how many candidates
  /// each other window has. Of those that were not asked yet it is what they had in the last step.
  virtual void Beside(std::span<const std::size_t>) {}

  /// Adds the runs for the next step, none of them longer than `room`; none at all lets the target
  /// go alone. They stay valid until the next call of any function. Only strategies that couple the
  /// lanes may block here: that is what the others avoid.
  virtual void Propose(std::size_t room, CandidateRuns* runs) = 0;

  /// What became of `runs`, those proposed, but cut (perhaps to nothing) where a token could not be
  /// the target's or the context ended: the first `accepted` tokens of run `best` are the target's
  /// own choice, and no run did better; something of run `best` is left. Comes before Committed;
  /// not when nothing was verified.
  virtual void Verified(const CandidateRuns& runs, std::size_t best, std::size_t accepted) = 0;

  /// The window is over, for whatever reason.
  virtual void EndWindow() = 0;
};

/// The target alone.
class TargetOnly final : public Strategy {
 public:
  void BeginWindow(const DraftSource&) override {}
  void Committed(std::span<const TokenId>) override {}
  void Propose(std::size_t, CandidateRuns*) override {}
  void Verified(const CandidateRuns&, std::size_t, std::size_t) override {}
  void EndWindow() override {}
};

}  // namespace as2d
