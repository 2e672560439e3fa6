// Drives a draft head that is a small decoder behind an adapter.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "as2d/decode/aligner.h"
#include "as2d/decode/budget.h"
#include "as2d/decode/models.h"
#include "as2d/models/spoken_text.h"
#include "as2d/models/whisper.h"
#include "as2d/text/retokenizer.h"
#include "as2d/text/token_keys.h"
#include "as2d/text/vocabulary.h"

namespace as2d {

/// A decoder like Whisper's that looks at the target's encoding through an adapter. The adapter's
/// graph also makes a sketch, a guess at the letters of the whole text that costs next to nothing:
/// cut into tokens, the decoder verifies it in batches as the target verifies the draft, and so
/// says what it would say token by token, in fewer steps. Where the graph makes no sketch, every
/// token is a step. Used by one thread at a time, but for Cancel.
class AdapterHead final : public DraftModel {
 public:
  /// `model` is one that hears an encoding (see WhisperModel).
  AdapterHead(std::shared_ptr<WhisperModel> model, Vocabulary vocabulary);

  bool needs_encoding() const override { return true; }
  void Begin(const Window& window, std::span<const float> encoding) override;
  bool Next(std::vector<TokenId>* tokens) override;
  void Follow(std::span<const TokenId> history) override;
  bool encoding() const override { return !encoded_; }
  float confidence() const override { return confidence_; }
  void Cancel() override { model_->canceller().Cancel(); }
  void ClearCancel() override { model_->canceller().Reset(); }

 private:
  void Encode();
  void Realign();
  std::span<const TokenId> Candidates();

  const std::shared_ptr<WhisperModel> model_;
  const Vocabulary vocabulary_;
  const WordTokenizer tokenizer_;
  Retokenizer retokenizer_;  // from letters
  const TokenKeys keys_;
  Aligner aligner_;  // of what is said in the sketch
  std::optional<AdaptiveBudget> budget_;
  std::span<const float> heard_;
  std::vector<TokenId> sketch_;
  SpokenText text_;
  bool encoded_ = false;
  float confidence_ = 1;
  std::vector<Row> rows_;
  std::vector<TokenId> next_;
};

}  // namespace as2d
