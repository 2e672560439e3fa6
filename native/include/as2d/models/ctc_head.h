// Drives a draft head that says a whole window in one piece of work.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "as2d/decode/models.h"
#include "as2d/models/bundle.h"
#include "as2d/models/encoder_input.h"
#include "as2d/platform/worker_pool.h"
#include "as2d/runtime/session.h"
#include "as2d/text/token_keys.h"

namespace as2d {

/// A draft from connectionist temporal classification (Graves et al. 2006): one letter, or a blank,
/// for each place of the audio; what repeats is one letter. All letters come of one piece of work.
/// They do not depend on one another, so after a history it goes on where its own text has that.
/// Used by one thread at a time, but for Cancel.
class CtcHead final : public DraftModel {
 public:
  /// Loads the graph onto the lane of `pool`. Throws Error, naming the file.
  CtcHead(std::shared_ptr<const Runtime> runtime, const Bundle& bundle,
          std::shared_ptr<WorkerPool> pool);

  bool needs_encoding() const override { return true; }
  void Begin(const Window& window, std::span<const float> encoding) override;
  bool Next(std::vector<TokenId>* tokens) override;
  void Follow(std::span<const TokenId> history) override;
  bool encoding() const override { return !encoded_; }
  /// The graph does not tell: always 1.
  float confidence() const override { return 1; }
  void Cancel() override { canceller_.Cancel(); }
  void ClearCancel() override { canceller_.Reset(); }

 private:
  void Encode();
  void GoOnAfter(std::span<const TokenId> history);

  const TokenId blank_;
  Canceller canceller_;
  std::shared_ptr<Session> encoder_;
  EncoderInput input_;
  const TokenKeys keys_;  // every token is only like itself
  std::span<const float> heard_;
  bool encoded_ = false;
  std::vector<TokenId> history_;  // to go on after, once encoded
  std::vector<TokenId> text_;     // of the window
  std::size_t said_ = 0;          // of text_
};

}  // namespace as2d
