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
  cached_ = 0;
  sketch_.clear();
  budget_.emplace(kMostRows - 1);
  const Bundle& bundle = model_->bundle();
  text_ = {bundle.RequiredToken("start"), bundle.RequiredToken("no_timestamps")};
  prompt_ = text_.size();
  most_tokens_ = std::min(static_cast<std::size_t>(model_->context()),
                          prompt_ + MostDraftTokens(window.samples.size()));
}

bool AdapterHead::Next(std::vector<TokenId>* tokens) {
  if (!encoded_) {
    Encode();
    return true;
  }
  if (text_.size() >= most_tokens_) return false;
  const std::span<const TokenId> candidates = Candidates();
  rows_.clear();
  const auto add = [&](std::size_t at, TokenId token) {
    const int position = static_cast<int>(at);
    rows_.push_back({.token = token, .position = position, .at = position});
  };
  for (std::size_t i = cached_; i < text_.size(); ++i) add(i, text_[i]);
  for (std::size_t i = 0; i < candidates.size(); ++i) add(text_.size() + i, candidates[i]);
  next_.resize(rows_.size());
  model_->Forward(rows_, false, next_);

  const std::size_t last = text_.size() - cached_ - 1;  // the row of what was said last
  std::vector<TokenId> fresh;
  const Verdict verdict = Verify(candidates, std::span(next_).subspan(last), model_->end_token(),
                                 most_tokens_ - text_.size(), &fresh);
  cached_ = text_.size() + std::min(verdict.accepted, fresh.size());
  if (!candidates.empty()) budget_->Observe(candidates.size(), verdict.accepted);
  confidence_ = std::exp(model_->log_probability(last + verdict.accepted));
  for (const TokenId token : fresh) aligner_.PushCommitted(token);
  text_.insert(text_.end(), fresh.begin(), fresh.end());
  tokens->insert(tokens->end(), fresh.begin(), fresh.end());
  return !verdict.finished && !EndsInALoop(said());
}

void AdapterHead::Follow(std::span<const TokenId> history) {
  const auto same =
      static_cast<std::size_t>(std::ranges::mismatch(said(), history).in1 - said().begin());
  text_.resize(prompt_);
  text_.insert(text_.end(), history.begin(), history.end());
  // The last token is fed once more, for what follows it.
  cached_ = std::min({cached_, prompt_ + same, text_.size() - 1});
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
  for (const TokenId token : said()) aligner_.PushCommitted(token);
}

// What the sketch has after what was said, as much as a step takes.
std::span<const TokenId> AdapterHead::Candidates() {
  const std::size_t fresh = text_.size() - cached_;
  const std::optional<std::size_t> place = aligner_.Position();
  if (!place || fresh >= kMostRows) return {};
  // One token of the step is the decoder's own.
  const std::size_t room = most_tokens_ - text_.size() - 1;
  const std::span<const TokenId> run =
      aligner_.Candidates(*place, std::min({budget_->Next(), kMostRows - fresh, room}));
  const auto outside = std::ranges::find_if(
      run, [&](TokenId token) { return token < 0 || token >= model_->vocabulary_size(); });
  return run.first(static_cast<std::size_t>(outside - run.begin()));
}

}  // namespace as2d
