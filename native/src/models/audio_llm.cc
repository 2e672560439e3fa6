#include "as2d/models/audio_llm.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>

#include "as2d/error.h"
#include "as2d/kernels/choose.h"
#include "as2d/models/choice_rows.h"
#include "decoder_rows.h"
#include "published_graph.h"

namespace as2d {

/// Audio, and what the encoder said of it.
struct AudioLlmTarget::Heard {
  std::vector<float> samples;
  std::vector<float> lines;
};

struct AudioLlmTarget::Slot {
  std::shared_ptr<const Heard> heard = std::make_shared<const Heard>();
  MergedDecoder::Text text;
  std::vector<TokenId> prompt;  // the text begins with it
};

AudioLlmTarget::AudioLlmTarget(const std::shared_ptr<const Runtime>& runtime, const Bundle& bundle,
                               const std::shared_ptr<WorkerPool>& pool)
    : audio_token_(bundle.RequiredToken("audio")),
      ends_(bundle),
      even_rows_only_(bundle.Text("row_invariance") == "even"),
      canceller_(runtime),
      audio_(runtime, bundle, pool),
      embedding_(LoadPublished(runtime, bundle.File("embedding"), pool)),
      decoder_(runtime, bundle, pool),
      suppress_(static_cast<std::size_t>(decoder_.vocabulary_size())),
      last_heard_(std::make_shared<const Heard>()) {
  if (embedding_->inputs().size() != 1 || embedding_->outputs().size() != 1) {
    throw Error(embedding_->file().string() + ": turns no tokens into lines; pull the model again");
  }
  RequireFloat(*embedding_, embedding_->outputs().front());
  ReserveSlots(1);
}

AudioLlmTarget::~AudioLlmTarget() = default;

void AudioLlmTarget::ReserveSlots(int slots) {
  while (slots_.size() < static_cast<std::size_t>(slots)) {
    Slot slot;
    slot.text = decoder_.Begin();
    slots_.push_back(std::move(slot));
  }
}

int AudioLlmTarget::slots() const { return static_cast<int>(slots_.size()); }

int AudioLlmTarget::vocabulary_size() const {
  return std::max(decoder_.vocabulary_size(), audio_token_ + 1);
}

std::span<const float> AudioLlmTarget::encoding() const { return last_heard_->lines; }

AudioLlmTarget::Slot& AudioLlmTarget::SlotOf(int slot) {
  if (slot < 0 || slot >= slots()) throw Error("there is no slot " + std::to_string(slot));
  return slots_[static_cast<std::size_t>(slot)];
}

void AudioLlmTarget::Encode(std::span<const float> samples, int slot) {
  Slot& place = SlotOf(slot);
  const auto same = std::ranges::find_if(
      slots_, [&](const Slot& other) { return std::ranges::equal(other.heard->samples, samples); });
  if (same != slots_.end()) {
    last_heard_ = same->heard;
  } else {
    const auto heard = std::make_shared<Heard>();
    heard->lines = audio_.Encode(samples, canceller_);
    heard->samples.assign(samples.begin(), samples.end());
    last_heard_ = heard;
  }
  if (place.heard == last_heard_) return;
  place.heard = last_heard_;
  // What comes before it is the same.
  place.prompt.erase(std::ranges::find(place.prompt, audio_token_), place.prompt.end());
}

ChoiceRules AudioLlmTarget::Rules(const Window& window) const {
  ChoiceRules rules;
  rules.Sample(window.temperature, window.seed);
  return rules;
}

Tensor AudioLlmTarget::Embed(std::span<const TokenId> tokens) {
  const Tensor ids(embedding_->runtime(), ElementType::kInt64,
                   {1, static_cast<std::int64_t>(tokens.size())});
  // A place for audio may lie behind what the graph knows; what stands there is replaced.
  std::ranges::transform(tokens, ids.values<std::int64_t>().begin(), [&](TokenId token) {
    return token < decoder_.vocabulary_size() ? token : 0;
  });
  const Session::Input in = {embedding_->inputs().front().name.c_str(), &ids};
  const char* const out = embedding_->outputs().front().name.c_str();
  return std::move(embedding_->Run({&in, 1}, {&out, 1}, &canceller_).front());
}

/// Puts the first of `lines` in the places for audio; returns how many numbers that took.
std::size_t AudioLlmTarget::PutAudio(std::span<const TokenId> tokens, std::span<const float> lines,
                                     const Tensor& embedded) const {
  const std::size_t width = audio_.width();
  const std::span<float> embeds = embedded.values<float>();
  if (embeds.size() != tokens.size() * width) {
    throw Error(embedding_->file().string() + ": says " + ShapeText(embedded.shape()) + " of " +
                std::to_string(tokens.size()) + " tokens, not lines of the " +
                std::to_string(width) + " numbers that bundle.txt promises; pull the model again");
  }
  std::size_t taken = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] != audio_token_) continue;
    std::ranges::copy(lines.subspan(taken, width), embeds.subspan(i * width, width).begin());
    taken += width;
  }
  return taken;
}

/// What the model says after `asked`, whose logits are the row'th from the end.
FirstToken AudioLlmTarget::Choose(const Tensor& logits, std::size_t row, const Row& asked) const {
  const std::size_t count = suppress_.size();
  const std::span<const float> one = logits.values<float>().last((row + 1) * count).first(count);
  const Chosen chosen = ChooseToken(one, suppress_, ChoiceLineOf(asked), asked.choice.temperature);
  return {.token = ends_.Of(static_cast<TokenId>(chosen.token)),
          .log_probability = chosen.log_probability};
}

FirstToken AudioLlmTarget::Prompt(std::span<const TokenId> prompt, const Choice& choice, int slot) {
  Slot& place = SlotOf(slot);
  const std::size_t width = audio_.width();
  const auto places = static_cast<std::size_t>(std::ranges::count(prompt, audio_token_));
  if (places * width != place.heard->lines.size()) {
    throw Error("the prompt keeps " + std::to_string(places) +
                " places for audio, and the encoder says " +
                std::to_string(place.heard->lines.size() / width) + " lines of it");
  }
  if (prompt.empty() || prompt.size() > static_cast<std::size_t>(context())) {
    throw Error("a prompt of " + std::to_string(prompt.size()) +
                " tokens does not fit the context of " + std::to_string(context()));
  }
  // Whole blocks, so that the numbers of a prompt do not depend on what was asked before.
  const auto same = static_cast<std::size_t>(std::ranges::mismatch(place.prompt, prompt).in1 -
                                             place.prompt.begin());
  std::size_t at = std::min(same, prompt.size() - 1) / kBlockRows * kBlockRows;
  place.prompt.resize(at);
  decoder_.Cut(&place.text, at);
  std::span<const float> lines = place.heard->lines;
  lines = lines.subspan(
      width * static_cast<std::size_t>(std::ranges::count(prompt.first(at), audio_token_)));
  Tensor logits;
  while (at < prompt.size()) {
    const auto block = prompt.subspan(at, std::min(kBlockRows, prompt.size() - at));
    const Tensor embedded = Embed(block);
    lines = lines.subspan(PutAudio(block, lines, embedded));
    std::vector<std::int64_t> positions(block.size());
    std::iota(positions.begin(), positions.end(), static_cast<std::int64_t>(at));
    logits = decoder_.Run(&place.text, embedded, positions, 1, canceller_);
    place.prompt.insert(place.prompt.end(), block.begin(), block.end());
    at += block.size();
  }
  return Choose(logits, 0, {.position = static_cast<int>(at) - 1, .choice = choice});
}

void AudioLlmTarget::Forward(std::span<const Row> rows, std::span<TokenId> next,
                             std::span<float> log_probability) {
  RequireFit(rows, context());
  // The lane pads the step as a whole; here each slot is a step.
  const bool pad = even_rows_only_ && rows.front().slot != rows.back().slot;
  while (!rows.empty()) {
    const int slot = rows.front().slot;
    const auto count = static_cast<std::size_t>(
        std::ranges::find_if(rows, [&](const Row& row) { return row.slot != slot; }) -
        rows.begin());
    Step(rows.first(count), pad, next.first(count), log_probability.first(count));
    rows = rows.subspan(count);
    next = next.subspan(count);
    log_probability = log_probability.subspan(count);
  }
}

/// A forward of one slot.
void AudioLlmTarget::Step(std::span<const Row> rows, bool pad, std::span<TokenId> next,
                          std::span<float> log_probability) {
  Slot& place = SlotOf(rows.front().slot);
  const auto past = static_cast<std::size_t>(rows.front().at);
  std::vector<TokenId> tokens;
  std::vector<std::int64_t> positions;
  for (const Row& row : rows) {
    if (row.shared != 0 || row.begin != 0 || past > place.text.length() ||
        static_cast<std::size_t>(row.at) != past + tokens.size()) {
      throw Error("this decoder takes rows one behind the other, each of which sees all that is " +
                  std::string("before it: none at ") + std::to_string(row.at) + " of a text of " +
                  std::to_string(place.text.length()));
    }
    tokens.push_back(row.token);
    positions.push_back(row.position);
  }
  if (pad && tokens.size() % 2 != 0 && rows.back().at + 1 < context()) {
    tokens.push_back(tokens.back());
    positions.push_back(positions.back() + 1);
  }
  place.prompt.resize(std::min(place.prompt.size(), past));
  decoder_.Cut(&place.text, past);
  const Tensor logits =
      decoder_.Run(&place.text, Embed(tokens), positions, tokens.size(), canceller_);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const FirstToken chosen = Choose(logits, tokens.size() - 1 - i, rows[i]);
    next[i] = chosen.token;
    log_probability[i] = chosen.log_probability;
  }
}

void AudioLlmTarget::Move(int, int, int, int) {
  throw Error("the caches of this target hold one run of a window, and nothing beside it");
}

}  // namespace as2d
