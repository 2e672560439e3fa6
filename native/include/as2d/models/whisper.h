// Drives Whisper's graphs, as target and as drafter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "as2d/decode/models.h"
#include "as2d/models/bundle.h"
#include "as2d/models/choice_rows.h"
#include "as2d/models/encoder_input.h"
#include "as2d/models/spoken_text.h"
#include "as2d/platform/worker_pool.h"
#include "as2d/runtime/session.h"

namespace as2d {

/// Whisper (Radford et al. 2022) as this project builds it: an encoder from PCM to the decoder's
/// cross-attention keys and values, and a decoder whose self-attention caches are fixed buffers
/// that it writes in place, so that a rewind is a smaller length. Used by one thread at a time, but
/// for Cancel.
///
/// Also the draft head that is built like it (`kind: adapter`), but for its encoder: that takes
/// what the encoder of the target says, and so does this then, in the place of audio.
class WhisperModel {
 public:
  /// Loads both graphs onto the lane of `pool`. Throws Error, naming the file.
  WhisperModel(std::shared_ptr<const Runtime> runtime, const Bundle& bundle,
               std::shared_ptr<WorkerPool> pool);

  /// Makes room for `slots` windows at a time, at least. What the slots held is lost, but for what
  /// LanguageProbabilities left for the next Encode. Only between two runs.
  void ReserveSlots(int slots);
  int slots() const { return slots_; }

  /// Encodes at most window_samples() of 16 kHz mono into a slot; the rest of the window is
  /// silence. Throws Error, Cancelled.
  void Encode(std::span<const float> samples, int slot);

  /// Encodes the samples and a little silence into slot 0, where Encode fills up the window: as
  /// much cheaper as the window is longer, and not what the model was trained on. For drafts. What
  /// other slots hold is lost. Throws Error, Cancelled.
  void EncodeBriefly(std::span<const float> samples);

  /// Whether it is a head; one has EncodeLines only, the others all but that.
  bool hears_encoding() const { return input_.width() > 0; }
  /// Encodes lines of line_width() numbers into slot 0. Throws Error, Cancelled.
  void EncodeLines(std::span<const float> lines);
  std::size_t line_width() const { return input_.width(); }
  /// Of the lines of the last EncodeLines the likeliest letter, a token of one byte, for every
  /// place, the blank being vocabulary_size(); empty where the graph does not tell. Valid until the
  /// next EncodeLines.
  std::span<const std::int64_t> sketch() const;

  /// One forward of the decoder. `begin` applies the rules for a window's first token, to every
  /// row. Throws Error, Cancelled.
  void Forward(std::span<const Row> rows, bool begin, std::span<TokenId> next);

  /// What the last Encode, or EncodeBriefly, put into the slot is made of: see TargetModel.
  std::span<const float> encoding() const;
  std::size_t encoding_width() const { return static_cast<std::size_t>(encoding_.shape().back()); }

  /// Log-probability of what the last Forward chose for `row`.
  float log_probability(std::size_t row) const { return log_prob_.values<float>()[row]; }

  /// How much each row looks at each position of the audio, seen from the first one on, in the
  /// heads that follow the audio: [rows, heads, positions], softmax over `positions`. Runs `rows`,
  /// all of one slot, through the decoder. Empty where no heads are known. Throws Error, Cancelled.
  std::vector<float> Alignment(std::span<const Row> rows, std::size_t positions);
  std::size_t alignment_heads() const { return alignment_heads_.size(); }

  /// Moves what is cached at [from, from + count) of a slot to `to` < from.
  void Move(int slot, int from, int to, int count);

  /// Probability of each language of the bundle, in its order, for `samples`. Uses slot 0; the next
  /// Encode costs nothing if it is that of the same samples into that slot. Throws Error for a
  /// model without language tokens, Cancelled.
  std::vector<std::pair<std::string, float>> LanguageProbabilities(std::span<const float> samples);

  const Bundle& bundle() const { return bundle_; }
  int context() const { return context_; }
  int vocabulary_size() const { return vocabulary_size_; }
  std::size_t window_samples() const { return window_samples_; }
  TokenId end_token() const { return end_token_; }
  bool even_rows_only() const { return even_rows_only_; }
  Canceller& canceller() { return canceller_; }

 private:
  struct Step;
  /// What is bound beside the step itself.
  enum Kind : int { kPlain = 0, kBegin = 1, kLanguages = 2, kQueries = 4 };
  Step& StepOf(std::size_t rows, int kind);
  void Put(std::span<const Row> rows);
  std::size_t Keys(int layer, int head, int slot, std::size_t positions,
                   std::vector<float>* keys) const;
  void SetRow(std::size_t index, const Row& row);
  void SetTiles(std::size_t tiles);
  Binding& EncoderOf(int slot);
  void RunEncoder(std::span<const float> heard, std::size_t tiles, int slot);
  std::int64_t EncodedPositions() const;
  std::int64_t SketchPlaces(std::size_t tiles) const;

  const Bundle bundle_;
  const int context_;
  const int vocabulary_size_;
  const std::size_t window_samples_;
  const TokenId end_token_;
  const bool even_rows_only_;
  Canceller canceller_;
  const std::shared_ptr<Session> encoder_;
  const std::shared_ptr<Session> decoder_;
  EncoderInput input_;
  std::size_t tiles_;  // of what is encoded
  int slots_ = 0;
  Tensor encoding_;  // none of a head
  Tensor sketch_;    // of a head only
  // By name; those of the caches without "past_" or "present_". The first dimension is the slot.
  // Those of the audio are as large as a window wants it.
  std::vector<std::pair<std::string, Tensor>> cross_, cache_;
  Tensor tokens_, positions_, places_;
  ChoiceRows choices_;
  Tensor next_, log_prob_, language_logits_;
  /// A head of the decoder whose cross-attention follows the audio.
  struct AlignmentHead {
    int layer = 0;
    int head = 0;
  };
  std::vector<AlignmentHead> alignment_heads_;
  std::map<int, Tensor> queries_;  // by layer, made when they are asked for
  Tensor suppress_, begin_suppress_;
  std::map<int, std::unique_ptr<Binding>> encoder_bindings_;  // by slot
  // One binding for each number of rows that has occurred: nothing is bound anew from step to step.
  std::map<std::pair<std::size_t, int>, std::unique_ptr<Step>> steps_;
  std::optional<std::vector<float>> detected_;  // what slot 0 was made from to tell the language

 public:
  ~WhisperModel();
  WhisperModel(const WhisperModel&) = delete;
  WhisperModel& operator=(const WhisperModel&) = delete;
};

/// Whisper as the target.
class WhisperTarget final : public TargetModel {
 public:
  explicit WhisperTarget(std::shared_ptr<WhisperModel> model) : model_(std::move(model)) {}

  void Encode(std::span<const float> samples, int slot) override { model_->Encode(samples, slot); }
  ChoiceRules Rules(const Window& window) const override;
  FirstToken Prompt(std::span<const TokenId> prompt, const Choice& choice, int slot) override;
  void Forward(std::span<const Row> rows, std::span<TokenId> next,
               std::span<float> log_probability) override;
  std::vector<float> TokenTimes(const Window& window, std::span<const TokenId> text,
                                int slot) override;
  void Move(int slot, int from, int to, int count) override { model_->Move(slot, from, to, count); }
  std::span<const float> encoding() const override { return model_->encoding(); }
  std::size_t encoding_width() const override { return model_->encoding_width(); }
  int slots() const override { return model_->slots(); }
  int context() const override { return model_->context(); }
  TokenId end_token() const override { return model_->end_token(); }
  int vocabulary_size() const override { return model_->vocabulary_size(); }
  bool even_rows_only() const override { return model_->even_rows_only(); }
  void Cancel() override { model_->canceller().Cancel(); }
  void ClearCancel() override { model_->canceller().Reset(); }

 private:
  std::size_t StartOf(std::span<const TokenId> prompt) const;

  const std::shared_ptr<WhisperModel> model_;
  std::vector<Row> rows_;
  std::vector<TokenId> next_;
};

/// Whisper as a drafter: its own prompt, its own history. Audio that is longer than its window, as
/// other targets take it, is drafted in pieces, cut at quiet places, one after the other.
class WhisperDrafter final : public DraftModel {
 public:
  /// `brief`: no more work than a draft is worth. It encodes no more than the audio (see
  /// WhisperModel::EncodeBriefly), and ends where it loops or says more than anybody can in the
  /// time. Otherwise it does what the model as a target would.
  WhisperDrafter(std::shared_ptr<WhisperModel> model, bool brief)
      : model_(std::move(model)), brief_(brief) {}

  void Begin(const Window& window, std::span<const float> encoding) override;
  bool Next(std::vector<TokenId>* tokens) override;
  void Follow(std::span<const TokenId> history) override;
  bool encoding() const override { return !encoded_; }
  float confidence() const override { return confidence_; }
  void Cancel() override { model_->canceller().Cancel(); }
  void ClearCancel() override { model_->canceller().Reset(); }

 private:
  struct Piece {
    std::span<const float> samples;
    std::size_t first_token = 0;  // of the window's text
  };

  void EnterPiece(std::size_t piece);
  bool EnterNextPiece();

  const std::shared_ptr<WhisperModel> model_;
  const bool brief_;
  std::vector<Piece> pieces_;  // of the window; never empty once it has begun
  std::size_t piece_ = 0;      // the current one ...
  SpokenText text_;            // ... and its text
  std::vector<TokenId> prompt_;
  bool encoded_ = false;
  float confidence_ = 1;
  std::vector<Row> rows_;
  std::vector<TokenId> next_;
};

}  // namespace as2d
