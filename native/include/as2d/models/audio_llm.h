// Drives audio language models: Ultravox, Voxtral and what is published like them.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "as2d/decode/models.h"
#include "as2d/models/audio_encoder.h"
#include "as2d/models/bundle.h"
#include "as2d/models/ends.h"
#include "as2d/models/merged_decoder.h"
#include "as2d/platform/worker_pool.h"
#include "as2d/runtime/session.h"

namespace as2d {

/// A language model that hears, as the target. A window is a request, with the audio it is about:
/// its prompt keeps a place, the token `token.audio`, for each line that the encoder says of the
/// samples.
///
/// The graphs are those that others publish: the encoder (see AudioEncoder), `embedding`, from
/// tokens to lines of the decoder's width, and the decoder (see MergedDecoder), from those to
/// logits. Its caches are of one text in one piece. So slots run one after the other, and a batch
/// gains nothing; and a row sees all that is before it: rows that are not to see each other
/// (`Row.begin`) are refused.
///
/// What a prompt has in common with the one before, of the same slot and audio, is not computed
/// again, but for the last block; and no samples are encoded twice that a slot holds.
class AudioLlmTarget final : public TargetModel {
 public:
  /// Rows of a prompt that are computed at once: enough to read the weights for, few enough that
  /// no operator takes long, between two of which a run is cancelled.
  static constexpr std::size_t kBlockRows = 64;

  /// Loads the graphs onto the lane of `pool`. Throws Error, naming the file.
  AudioLlmTarget(const std::shared_ptr<const Runtime>& runtime, const Bundle& bundle,
                 const std::shared_ptr<WorkerPool>& pool);
  ~AudioLlmTarget() override;

  /// Makes room for `slots` texts at a time, at least. Only between two runs.
  void ReserveSlots(int slots);

  /// Throws Error for more samples than the model takes.
  void Encode(std::span<const float> samples, int slot) override;
  /// Any token, as the window has it drawn.
  ChoiceRules Rules(const Window& window) const override;
  /// Throws Error unless the prompt keeps as many places for audio as the encoder said lines.
  FirstToken Prompt(std::span<const TokenId> prompt, const Choice& choice, int slot) override;
  /// Throws Error for rows that do not follow one another, or what their slot holds, and for those
  /// that do not see all that is before them.
  void Forward(std::span<const Row> rows, std::span<TokenId> next,
               std::span<float> log_probability) override;
  /// Throws Error: what Forward takes never lies elsewhere than it is to.
  void Move(int slot, int from, int to, int count) override;
  std::span<const float> encoding() const override;
  std::size_t encoding_width() const override { return audio_.width(); }
  int slots() const override;
  int context() const override { return decoder_.context(); }
  TokenId end_token() const override { return ends_.token(); }
  /// Holds the place for audio too, which may lie behind all that the model can say.
  int vocabulary_size() const override;
  bool even_rows_only() const override { return even_rows_only_; }
  void Cancel() override { canceller_.Cancel(); }
  void ClearCancel() override { canceller_.Reset(); }

 private:
  struct Heard;
  struct Slot;

  Slot& SlotOf(int slot);
  Tensor Embed(std::span<const TokenId> tokens);
  std::size_t PutAudio(std::span<const TokenId> tokens, std::span<const float> lines,
                       const Tensor& embedded) const;
  void Step(std::span<const Row> rows, bool pad, std::span<TokenId> next,
            std::span<float> log_probability);
  FirstToken Choose(const Tensor& logits, std::size_t row, const Row& asked) const;

  const TokenId audio_token_;
  const Ends ends_;
  const bool even_rows_only_;
  Canceller canceller_;
  const AudioEncoder audio_;
  const std::shared_ptr<Session> embedding_;
  const MergedDecoder decoder_;
  const std::vector<float> suppress_;  // nothing
  std::vector<Slot> slots_;
  std::shared_ptr<const Heard> last_heard_;
};

}  // namespace as2d
