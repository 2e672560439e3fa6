// Drives Whisper's graphs, as target and as drafter.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "as2d/decode/models.h"
#include "as2d/models/bundle.h"
#include "as2d/platform/worker_pool.h"
#include "as2d/runtime/session.h"

namespace as2d {

/// Whisper (Radford et al. 2022) as this project builds it: an encoder from PCM to the decoder's
/// cross-attention keys and values, and a decoder whose self-attention caches are fixed buffers
/// that it writes in place, so that a rewind is a smaller length. Used by one thread at a time, but
/// for Cancel.
class WhisperModel {
 public:
  /// Loads both graphs onto the lane of `pool`. Throws Error, naming the file.
  WhisperModel(std::shared_ptr<const Runtime> runtime, const Bundle& bundle,
               std::shared_ptr<WorkerPool> pool);

  /// Encodes at most window_samples() of 16 kHz mono; the rest of the window is silence. Encoding
  /// the same samples again costs nothing. Throws Error, Cancelled.
  void Encode(std::span<const float> samples);

  /// One forward of the decoder over `rows` at positions [past, past + rows.size()). `begin`
  /// applies the rules for a window's first token, to every row. Throws Error, Cancelled.
  void Forward(std::span<const TokenId> rows, int past, bool begin, std::span<TokenId> next);

  /// Probability of each language of the bundle, in its order, for what was encoded last.
  /// Overwrites the caches. Throws Error for a model without language tokens, Cancelled.
  std::vector<std::pair<std::string, float>> LanguageProbabilities();

  const Bundle& bundle() const { return bundle_; }
  int context() const { return context_; }
  int vocabulary_size() const { return vocabulary_size_; }
  std::size_t window_samples() const { return window_samples_; }
  TokenId end_token() const { return end_token_; }
  bool even_rows_only() const { return even_rows_only_; }
  Canceller& canceller() { return canceller_; }

 private:
  struct Step;
  Step& StepOf(std::size_t rows, bool begin, bool languages);
  /// Row `row` of the next step stands at position `at` and sees all up to it.
  void Place(std::size_t row, int at);

  const Bundle bundle_;
  const int context_;
  const int vocabulary_size_;
  const std::size_t window_samples_;
  const TokenId end_token_;
  const bool even_rows_only_;
  Canceller canceller_;
  std::shared_ptr<Session> encoder_;
  std::shared_ptr<Session> decoder_;
  Tensor audio_;
  // By name; those of the caches without "past_" or "present_".
  std::vector<std::pair<std::string, Tensor>> cross_, cache_;
  Tensor tokens_, positions_, places_, next_, language_logits_;
  Tensor suppress_, begin_suppress_;
  std::unique_ptr<Binding> encoder_binding_;
  // One binding for each number of rows that has occurred: nothing is bound anew from step to step.
  std::map<std::pair<std::size_t, int>, std::unique_ptr<Step>> steps_;
  std::vector<float> encoded_;  // what cross_ was made from; empty when nothing
  bool encoded_valid_ = false;

 public:
  ~WhisperModel();
  WhisperModel(const WhisperModel&) = delete;
  WhisperModel& operator=(const WhisperModel&) = delete;
};

/// Whisper as the target.
class WhisperTarget final : public TargetModel {
 public:
  explicit WhisperTarget(std::shared_ptr<WhisperModel> model) : model_(std::move(model)) {}

  void Encode(std::span<const float> samples) override { model_->Encode(samples); }
  TokenId Prompt(std::span<const TokenId> prompt) override;
  void Forward(std::span<const TokenId> rows, int past, std::span<TokenId> next) override {
    model_->Forward(rows, past, false, next);
  }
  int context() const override { return model_->context(); }
  TokenId end_token() const override { return model_->end_token(); }
  int vocabulary_size() const override { return model_->vocabulary_size(); }
  bool even_rows_only() const override { return model_->even_rows_only(); }
  void Cancel() override { model_->canceller().Cancel(); }
  void ClearCancel() override { model_->canceller().Reset(); }

 private:
  const std::shared_ptr<WhisperModel> model_;
  std::vector<TokenId> rows_, next_;
};

/// Whisper as a drafter: one row a step, its own prompt, its own history.
class WhisperDrafter final : public DraftModel {
 public:
  explicit WhisperDrafter(std::shared_ptr<WhisperModel> model) : model_(std::move(model)) {}

  void Begin(const Window& window) override;
  bool Next(std::vector<TokenId>* tokens) override;
  bool encoding() const override { return encoding_; }
  void Cancel() override { model_->canceller().Cancel(); }
  void ClearCancel() override { model_->canceller().Reset(); }

 private:
  const std::shared_ptr<WhisperModel> model_;
  std::span<const float> samples_;
  std::vector<TokenId> prompt_;
  bool encoding_ = true;
  bool encoded_ = false;
  int past_ = 0;
  TokenId last_ = 0;
};

}  // namespace as2d
