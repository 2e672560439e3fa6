// Where the candidates of a step come from. Strategies differ in this alone: the target lane, the
// verifier and the kernels are the same for all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "as2d/decode/aligner.h"
#include "as2d/decode/budget.h"
#include "as2d/decode/draft_stream.h"
#include "as2d/text/token_keys.h"
#include "as2d/text/vocabulary.h"
#include "as2d/trace/counters.h"

namespace as2d {

/// Called by the target lane only; must not block.
class Strategy {
 public:
  virtual ~Strategy() = default;

  /// A window begins. `stream` is what the draft lane publishes for it, or null without a drafter;
  /// it outlives the window.
  virtual void BeginWindow(const DraftStream* stream) = 0;

  /// The committed prefix grew by `tokens`.
  virtual void Committed(std::span<const TokenId> tokens) = 0;

  /// At most `room` candidates for the next step, ready right now; none lets the target go alone.
  /// Valid until the next call.
  virtual std::span<const TokenId> Candidates(std::size_t room) = 0;

  /// What became of the candidates: the first `proposed` were verified, the rest, if any, were of
  /// no use. Not called when none was.
  virtual void Verified(std::size_t proposed, std::size_t accepted) = 0;

  /// The window is over.
  virtual void EndWindow() = 0;
};

/// The target alone.
class TargetOnly final : public Strategy {
 public:
  void BeginWindow(const DraftStream*) override {}
  void Committed(std::span<const TokenId>) override {}
  std::span<const TokenId> Candidates(std::size_t) override { return {}; }
  void Verified(std::size_t, std::size_t) override {}
  void EndWindow() override {}
};

/// Target-decoupled drafting (AS²D, arXiv 2609.37617): the drafter follows its own history and
/// publishes; the target looks at what is there, places its committed prefix in it, and verifies
/// what comes after. It never waits, and tells the drafter nothing.
class DecoupledDrafting final : public Strategy {
 public:
  /// `counters` must outlive this.
  DecoupledDrafting(std::shared_ptr<const TokenKeys> keys, std::unique_ptr<BudgetPolicy> budget,
                    Counters* counters);

  void BeginWindow(const DraftStream* stream) override;
  void Committed(std::span<const TokenId> tokens) override;
  std::span<const TokenId> Candidates(std::size_t room) override;
  void Verified(std::size_t proposed, std::size_t accepted) override;
  void EndWindow() override;

 private:
  const std::shared_ptr<const TokenKeys> keys_;
  Aligner aligner_;
  const std::unique_ptr<BudgetPolicy> budget_;
  Counters* const counters_;
  const DraftStream* stream_ = nullptr;
  std::size_t read_ = 0;      // draft tokens given to the aligner
  std::size_t position_ = 0;  // where the last candidates begin
  std::size_t proposed_ = 0;  // draft tokens [0, proposed_) were proposed, or passed over
  std::size_t expected_ = 0;  // where the position would be had every token been the drafter's
  std::int64_t used_ = 0;     // draft tokens of this window that were ever proposed
};

}  // namespace as2d
