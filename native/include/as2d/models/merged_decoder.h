// Drives the decoder of a language model as others publish it: one graph for first and later steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "as2d/models/bundle.h"
#include "as2d/platform/worker_pool.h"
#include "as2d/runtime/session.h"

namespace as2d {

/// `decoder_model_merged`: inputs_embeds f32 [1, rows, width] and attention_mask i64 [1, past +
/// rows], perhaps position_ids i64 [1, rows] and num_logits_to_keep i64, and for each
/// past_key_values.… an output present.… that goes on from it -> logits f32 [1, rows or those to
/// keep, vocabulary]. Used by one thread at a time.
///
/// Such a graph returns its caches grown by its rows: after a rewind, what is kept of them is moved
/// together, which costs about as much as reading it twice. With `caches: in_place` in the bundle
/// it is all done by operators that take one buffer for both: a rewind is then a smaller length,
/// and nothing is copied.
class MergedDecoder {
 public:
  /// What one text has left in the decoder.
  class Text {
   public:
    std::size_t length() const { return length_; }

   private:
    friend class MergedDecoder;
    std::vector<Tensor> caches_;
    std::size_t length_ = 0;
    std::unique_ptr<Binding> step_;  // of caches in place
  };

  /// Loads the graph onto the lane of `pool`. Throws Error, naming the file.
  MergedDecoder(const std::shared_ptr<const Runtime>& runtime, const Bundle& bundle,
                std::shared_ptr<WorkerPool> pool);

  int context() const { return context_; }
  /// Numbers in a row of logits.
  int vocabulary_size() const { return vocabulary_size_; }

  /// An empty one.
  Text Begin() const;

  /// Keeps the first `length` <= text->length() positions.
  void Cut(Text* text, std::size_t length) const;

  /// One forward over rows that follow the text, and become part of it: `embedded` [1, rows,
  /// width], and the position of each. Returns logits whose last rows are those of the last `kept`
  /// rows. Throws Error, Cancelled; the text is as it was then.
  Tensor Run(Text* text, const Tensor& embedded, std::span<const std::int64_t> positions,
             std::size_t kept, const Canceller& canceller) const;

 private:
  const int context_;
  const int vocabulary_size_;
  const bool in_place_;
  const std::shared_ptr<Session> session_;
  std::vector<std::string> past_;     // inputs
  std::vector<std::string> present_;  // outputs that replace them
  std::vector<const char*> outputs_;  // logits, then present_
  Tensor seen_;                       // as many ones as the context is long
};

}  // namespace as2d
