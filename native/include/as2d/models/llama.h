// Drives language models of the llama and qwen2 families, as target and as drafter.
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
#include "as2d/models/choice_rows.h"
#include "as2d/models/ends.h"
#include "as2d/platform/worker_pool.h"
#include "as2d/runtime/session.h"

namespace as2d {

/// A decoder as this project builds it (as2d_cli/catalog/graphs/llama.py), whose caches are buffers
/// that it writes in place, so that a rewind is a smaller length. It remembers which text each slot
/// holds: what a prompt has in common with the one before is not computed again. Used by one thread
/// at a time, but for the canceller.
class LlamaModel {
 public:
  /// Rows of a prompt that are computed at once: enough to read the weights for, few enough to stop
  /// between them within a second.
  static constexpr std::size_t kBlockRows = 96;

  /// Loads the graph onto the lane of `pool`. Throws Error, naming the file.
  LlamaModel(std::shared_ptr<const Runtime> runtime, const Bundle& bundle,
             std::shared_ptr<WorkerPool> pool);
  ~LlamaModel();
  LlamaModel(const LlamaModel&) = delete;
  LlamaModel& operator=(const LlamaModel&) = delete;

  /// Makes room for `slots` texts at a time, at least. What the slots held is lost if that is more
  /// than there were. Only between two runs.
  void ReserveSlots(int slots);
  int slots() const { return slots_; }

  /// One forward over what `text`, which is not empty, has beyond what the slot holds of it, but no
  /// more than kBlockRows; its last token in any case. True when that was all: `next` then comes
  /// after the text, as `choice` has it. Throws Error, Cancelled.
  bool Feed(std::span<const TokenId> text, int slot, const Choice& choice = {});
  TokenId next() const { return TokenOf(0); }

  /// How much of `text` the slot holds.
  std::size_t Held(std::span<const TokenId> text, int slot) const;

  /// One forward; see TargetModel. Throws Error, Cancelled.
  void Forward(std::span<const Row> rows, std::span<TokenId> next);

  /// Log-probability of what the last forward chose, for `row` of Forward, or 0 after Feed.
  float log_probability(std::size_t row) const { return log_prob_.values<float>()[row]; }

  /// Moves what is cached at [from, from + count) of a slot to `to` < from.
  void Move(int slot, int from, int to, int count);

  const Bundle& bundle() const { return bundle_; }
  int context() const { return context_; }
  int vocabulary_size() const { return vocabulary_size_; }
  TokenId end_token() const { return ends_.token(); }
  Canceller& canceller() { return canceller_; }

 private:
  Binding& StepOf(std::size_t rows, std::size_t selected);
  void Run(std::span<const Row> rows, std::size_t selected);
  TokenId TokenOf(std::size_t row) const;

  const Bundle bundle_;
  const int context_;
  const int vocabulary_size_;
  const Ends ends_;
  Canceller canceller_;
  const std::shared_ptr<Session> decoder_;
  int slots_ = 0;
  // By name without "past_" or "present_". The first dimension is the slot.
  std::vector<std::pair<std::string, Tensor>> cache_;
  Tensor tokens_, positions_, places_, select_, suppress_, next_, log_prob_;
  ChoiceRows choices_;                      // of the selected rows
  std::vector<std::vector<TokenId>> held_;  // by slot: the text at its first positions
  // One binding for each number of rows and selected rows that has occurred.
  std::map<std::pair<std::size_t, std::size_t>, std::unique_ptr<Binding>> steps_;
};

/// A language model as the target. A window is a request: its prompt is the whole conversation so
/// far, and it has no samples.
class LlamaTarget final : public TargetModel {
 public:
  explicit LlamaTarget(std::shared_ptr<LlamaModel> model) : model_(std::move(model)) {}

  void Encode(std::span<const float>, int) override {}
  /// Any token, as the window has it drawn.
  ChoiceRules Rules(const Window& window) const override;
  FirstToken Prompt(std::span<const TokenId> prompt, const Choice& choice, int slot) override;
  void Forward(std::span<const Row> rows, std::span<TokenId> next,
               std::span<float> log_probability) override;
  void Move(int slot, int from, int to, int count) override { model_->Move(slot, from, to, count); }
  std::span<const float> encoding() const override { return {}; }
  std::size_t encoding_width() const override { return 0; }
  int slots() const override { return model_->slots(); }
  int context() const override { return model_->context(); }
  TokenId end_token() const override { return model_->end_token(); }
  int vocabulary_size() const override { return model_->vocabulary_size(); }
  /// Its graph is of the project's own operators, for which the number of rows does not matter.
  bool even_rows_only() const override { return false; }
  void Cancel() override { model_->canceller().Cancel(); }
  void ClearCancel() override { model_->canceller().Reset(); }

 private:
  const std::shared_ptr<LlamaModel> model_;
};

/// A language model as a drafter: the request, its own history. Its prompt counts as encoding.
class LlamaDrafter final : public DraftModel {
 public:
  explicit LlamaDrafter(std::shared_ptr<LlamaModel> model) : model_(std::move(model)) {}

  /// Throws Error if the prompt does not fit the context.
  void Begin(const Window& window, std::span<const float> encoding) override;
  bool Next(std::vector<TokenId>* tokens) override;
  void Follow(std::span<const TokenId> history) override;
  bool encoding() const override;
  float confidence() const override { return confidence_; }
  void Cancel() override { model_->canceller().Cancel(); }
  void ClearCancel() override { model_->canceller().Reset(); }

 private:
  const std::shared_ptr<LlamaModel> model_;
  std::vector<TokenId> text_;  // the prompt and what was said after it
  std::size_t prompt_ = 0;     // its length
  std::size_t most_ = 0;       // of the text
  float confidence_ = 1;
};

}  // namespace as2d
