#include "as2d/models/ctc_head.h"

#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include "as2d/decode/aligner.h"
#include "as2d/error.h"
#include "as2d/models/head.h"

namespace as2d {
namespace {

constexpr const char* kSketch = "sketch";

}  // namespace

CtcHead::CtcHead(std::shared_ptr<const Runtime> runtime, const Bundle& bundle,
                 std::shared_ptr<WorkerPool> pool)
    : blank_(bundle.Number("vocabulary_size", 2, 1 << 24) - 1),
      canceller_(runtime),
      encoder_(Session::Load(runtime, bundle.File("encoder"), OwnOperators(std::move(pool)))),
      input_(HeadInput(bundle, *encoder_)) {
  const ValueInfo* const output = encoder_->FindOutput(kSketch);
  if (output == nullptr || output->type != ElementType::kInt64) {
    throw Error(encoder_->file().string() + ": has no output '" + kSketch +
                "'; pull the model again");
  }
}

void CtcHead::Begin(const Window& window, std::span<const float> encoding) {
  heard_ = HeardOf(encoding, input_.width(), window.samples.size());
  encoded_ = false;
  history_.clear();
}

bool CtcHead::Next(std::vector<TokenId>* tokens) {
  if (!encoded_) {
    Encode();
    encoded_ = true;
    GoOnAfter(history_);
  }
  tokens->insert(tokens->end(), text_.begin() + static_cast<std::ptrdiff_t>(said_), text_.end());
  said_ = text_.size();
  return false;
}

void CtcHead::Follow(std::span<const TokenId> history) {
  if (encoded_) {
    GoOnAfter(history);
  } else {
    history_.assign(history.begin(), history.end());
  }
}

void CtcHead::Encode() {
  const std::size_t tiles = input_.TilesFor(heard_.size() / input_.width());
  input_.Write(heard_, tiles);
  const Tensor lines = input_.View(tiles);
  const std::array<Session::Input, 1> inputs = {{{input_.name().c_str(), &lines}}};
  const std::vector<Tensor> outputs = encoder_->Run(inputs, std::array{kSketch}, &canceller_);
  text_.clear();
  AppendSketch(outputs.front().values<std::int64_t>(), blank_, &text_);
}

void CtcHead::GoOnAfter(std::span<const TokenId> history) {
  Aligner aligner(keys_);
  for (const TokenId token : text_) aligner.PushDraft(token);
  for (const TokenId token : history) aligner.PushCommitted(token);
  said_ = aligner.Position().value_or(text_.size());
}

}  // namespace as2d
