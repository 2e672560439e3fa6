// Drives the published Moonshine graphs as a drafter.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "as2d/decode/models.h"
#include "as2d/models/bundle.h"
#include "as2d/platform/worker_pool.h"
#include "as2d/runtime/session.h"

namespace as2d {

/// Moonshine (Jeffries et al. 2024) as its authors publish it: `encoder_model` on raw audio and
/// `decoder_model_merged`, which returns its caches. The encoder's cost grows with the square of
/// the length and its text gets worse beyond ten seconds, so a window is drafted in pieces cut at
/// quiet places, one after the other. Used by one thread at a time, but for Cancel.
class MoonshineDrafter final : public DraftModel {
 public:
  /// Loads both graphs onto the lane of `pool`. Throws Error, naming the file.
  MoonshineDrafter(std::shared_ptr<const Runtime> runtime, const Bundle& bundle,
                   std::shared_ptr<WorkerPool> pool);

  void Begin(const Window& window, std::span<const float> encoding) override;
  bool Next(std::vector<TokenId>* tokens) override;
  void Follow(std::span<const TokenId> history) override;
  bool encoding() const override { return piece_ < pieces_.size() && !pieces_[piece_].encoded; }
  float confidence() const override;
  void Cancel() override { canceller_.Cancel(); }
  void ClearCancel() override { canceller_.Reset(); }

 private:
  struct Piece {
    std::span<const float> samples;
    std::size_t first_token = 0;  // of the window's text
    std::size_t most_tokens = 0;  // before it counts as a loop
    bool encoded = false;
    Tensor hidden, mask;
  };

  void EnterPiece(std::size_t piece);
  void EncodePiece(Piece& piece);
  TokenId Step(const Piece& piece);
  void Feed(const Piece& piece, std::span<const TokenId> tokens);

  const TokenId start_token_;
  const TokenId end_token_;
  Canceller canceller_;
  std::shared_ptr<const Runtime> runtime_;
  std::shared_ptr<Session> encoder_;
  std::shared_ptr<Session> decoder_;
  std::vector<std::string> past_names_;     // the decoder's cache inputs ...
  std::vector<std::string> present_names_;  // ... and the outputs that replace them
  std::vector<const char*> output_names_;   // logits, then present_names_

  std::vector<Piece> pieces_;  // of the window
  std::size_t piece_ = 0;      // the current one; pieces_.size() once the draft is complete
  std::vector<TokenId> text_;  // of the window
  std::size_t cached_ = 0;     // tokens in past_: the start token, and the piece's text
  Tensor logits_;              // of the last step
  std::vector<Tensor> past_;
};

}  // namespace as2d
