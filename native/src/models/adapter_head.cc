#include "as2d/models/adapter_head.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "as2d/decode/verifier.h"
#include "as2d/models/head.h"
#include "draft_limits.h"

namespace as2d {
namespace {

// As many as the kernels take at once.
constexpr std::size_t kMostRows = 16;

}  // namespace

AdapterHead::AdapterHead(std::shared_ptr<WhisperModel> model, Vocabulary vocabulary)
    : model_(std::move(model)),
      vocabulary_(std::move(vocabulary)),
      tokenizer_(vocabulary_),
      retokenizer_(vocabulary_, tokenizer_),
      keys_(vocabulary_),
      aligner_(keys_) {}

void AdapterHead::Begin(const Window& window, std::span<const float> encoding) {
  heard_ = HeardOf(encoding, model_->line_width(), window.samples.size());
  encoded_ = false;
  sketch_.clear();
  budget_.emplace(kMostRows - 1);
  const Bundle& bundle = model_->bundle();
  std::vector<TokenId> prompt = {bundle.RequiredToken("start"),
                                 bundle.RequiredToken("no_timestamps")};
  const std::size_t most = std::min(static_cast<std::size_t>(model_->context()),
                                    prompt.size() + MostDraftTokens(window.samples.size()));
  text_.Begin(std::move(prompt), most);
}

bool AdapterHead::Next(std::vector<TokenId>* tokens) {
  if (!encoded_) {
    Encode();
    return true;
  }
  if (text_.room() == 0) return false;
  const std::span<const TokenId> candidates = Candidates();
  rows_.clear();
  text_.AppendFresh(&rows_);
  for (const TokenId token : candidates) {
    const int at = rows_.back().at + 1;
    rows_.push_back({.token = token, .position = at, .at = at});
  }
  next_.resize(rows_.size());
  model_->Forward(rows_, false, next_);

  const std::size_t last = text_.fresh() - 1;  // the row of what was said last
  std::vector<TokenId> fresh;
  const Verdict verdict =
      Verify(candidates, std::span(next_).subspan(last), model_->end_token(), text_.room(), &fresh);
  text_.Say(fresh, verdict.accepted);
  if (!candidates.empty()) budget_->Observe(candidates.size(), verdict.accepted);
  confidence_ = std::exp(model_->log_probability(last + verdict.accepted));
  for (const TokenId token : fresh) aligner_.PushCommitted(token);
  tokens->insert(tokens->end(), fresh.begin(), fresh.end());
  return !verdict.finished && !EndsInALoop(text_.said());
}

void AdapterHead::Follow(std::span<const TokenId> history) {
  text_.Follow(history);
  Realign();
}

void AdapterHead::Encode() {
  model_->EncodeLines(heard_);
  std::vector<TokenId> letters;
  AppendSketch(model_->sketch(), model_->vocabulary_size(), &letters);
  retokenizer_.Reset();
  for (const TokenId letter : letters) retokenizer_.Push(letter, &sketch_);
  retokenizer_.Finish(&sketch_);
  encoded_ = true;
  Realign();
}

void AdapterHead::Realign() {
  aligner_.Reset();
  for (const TokenId token : sketch_) aligner_.PushDraft(token);
  for (const TokenId token : text_.said()) aligner_.PushCommitted(token);
}

// What the sketch has after what was said, as much as a step takes.
std::span<const TokenId> AdapterHead::Candidates() {
  const std::optional<std::size_t> place = aligner_.Position();
  if (!place || text_.fresh() >= kMostRows) return {};
  // One token of the step is the decoder's own.
  const std::size_t room = text_.room() - 1;
  const std::span<const TokenId> run =
      aligner_.Candidates(*place, std::min({budget_->Next(), kMostRows - text_.fresh(), room}));
  const auto outside = std::ranges::find_if(
      run, [&](TokenId token) { return token < 0 || token >= model_->vocabulary_size(); });
  return run.first(static_cast<std::size_t>(outside - run.begin()));
}

}  // namespace as2d
