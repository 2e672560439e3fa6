#include "as2d/models/audio_llm.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "as2d/error.h"
#include "as2d/kernels/choose.h"
#include "as2d/models/choice_rows.h"
#include "decoder_rows.h"
#include "grown_cache.h"
#include "published_graph.h"

namespace as2d {
namespace {

constexpr const char* kEmbeds = "inputs_embeds";
constexpr const char* kMask = "attention_mask";
constexpr const char* kPositions = "position_ids";
constexpr const char* kKept = "num_logits_to_keep";
constexpr const char* kLogits = "logits";

const ValueInfo& Require(const Session& graph, const ValueInfo* value, const char* name) {
  if (value != nullptr) return *value;
  throw Error(graph.file().string() + ": has no '" + name +
              "', which an audio language model needs; choose another export");
}

/// A cache keeps its first `length` positions, in its own memory.
void Cut(Tensor* cache, std::int64_t length) {
  Shape shape = cache->shape();
  const std::int64_t one = shape[2] * shape[3];
  if (shape[2] == length) return;
  shape[2] = length;
  float* const first = cache->values<float>().data();
  for (std::int64_t head = 1; head < shape[1]; ++head) {
    std::copy_n(first + head * one, length * shape[3], first + head * length * shape[3]);
  }
  *cache = cache->View(std::move(shape));
}

}  // namespace

/// Audio, and what the encoder said of it.
struct AudioLlmTarget::Heard {
  std::vector<float> samples;
  std::vector<float> lines;
};

struct AudioLlmTarget::Slot {
  std::shared_ptr<const Heard> heard;
  std::vector<TokenId> prompt;  // what of it was computed, in whole blocks and a last one
  std::vector<Tensor> past;

  std::size_t length() const { return static_cast<std::size_t>(past.front().shape()[2]); }
  void CutTo(std::size_t length) {
    for (Tensor& cache : past) Cut(&cache, static_cast<std::int64_t>(length));
  }
};

AudioLlmTarget::AudioLlmTarget(const std::shared_ptr<const Runtime>& runtime, const Bundle& bundle,
                               const std::shared_ptr<WorkerPool>& pool)
    : context_(bundle.Number("context", 4, 1 << 20)),
      logits_(bundle.Number("vocabulary_size", 2, 1 << 24)),
      audio_token_(bundle.RequiredToken("audio")),
      ends_(bundle),
      even_rows_only_(bundle.Text("row_invariance") == "even"),
      canceller_(runtime),
      audio_(runtime, bundle, pool),
      embedding_(LoadPublished(runtime, bundle.File("embedding"), pool)),
      decoder_(LoadPublished(runtime, bundle.File("decoder"), pool)),
      suppress_(static_cast<std::size_t>(logits_)),
      seen_(runtime, ElementType::kInt64, {1, context_}),
      positions_(runtime, ElementType::kInt64, {1, context_}),
      last_heard_(std::make_shared<const Heard>()) {
  GrownCacheNames caches = CachesOf(*decoder_);
  past_ = std::move(caches.past);
  present_ = std::move(caches.present);
  if (past_.empty()) throw Error(decoder_->file().string() + ": has no caches");
  outputs_.push_back(kLogits);
  for (const std::string& name : present_) outputs_.push_back(name.c_str());
  for (const ValueInfo& input : decoder_->inputs()) {
    const std::array known = {kEmbeds, kMask, kPositions, kKept};
    if (std::ranges::find(known, std::string_view(input.name)) == known.end() &&
        std::ranges::find(past_, input.name) == past_.end()) {
      throw Error(decoder_->file().string() + ": no driver for a decoder with the input '" +
                  input.name + "'; choose another export");
    }
  }
  RequireFloat(*decoder_, Require(*decoder_, decoder_->FindInput(kEmbeds), kEmbeds));
  Require(*decoder_, decoder_->FindInput(kMask), kMask);
  RequireFloat(*decoder_, Require(*decoder_, decoder_->FindOutput(kLogits), kLogits));
  if (embedding_->inputs().size() != 1 || embedding_->outputs().size() != 1) {
    throw Error(embedding_->file().string() + ": turns no tokens into lines");
  }
  RequireFloat(*embedding_, embedding_->outputs().front());
  std::ranges::fill(seen_.values<std::int64_t>(), 1);
  ReserveSlots(1);
}

AudioLlmTarget::~AudioLlmTarget() = default;

void AudioLlmTarget::ReserveSlots(int slots) {
  while (slots_.size() < static_cast<std::size_t>(slots)) {
    Slot slot;
    slot.heard = std::make_shared<const Heard>();
    for (const std::string& name : past_) slot.past.push_back(EmptyCache(*decoder_, name));
    slots_.push_back(std::move(slot));
  }
}

int AudioLlmTarget::slots() const { return static_cast<int>(slots_.size()); }

int AudioLlmTarget::vocabulary_size() const { return std::max(logits_, audio_token_ + 1); }

std::span<const float> AudioLlmTarget::encoding() const { return last_heard_->lines; }

AudioLlmTarget::Slot& AudioLlmTarget::SlotOf(int slot) {
  if (slot < 0 || slot >= slots()) throw Error("there is no slot " + std::to_string(slot));
  return slots_[static_cast<std::size_t>(slot)];
}

void AudioLlmTarget::Encode(std::span<const float> samples, int slot) {
  Slot& place = SlotOf(slot);
  const auto same = std::ranges::find_if(
      slots_, [&](const Slot& other) { return std::ranges::equal(other.heard->samples, samples); });
  last_heard_ =
      same != slots_.end()
          ? same->heard
          : std::make_shared<const Heard>(Heard{.samples = {samples.begin(), samples.end()},
                                                .lines = audio_.Encode(samples, canceller_)});
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
  const Tensor ids(decoder_->runtime(), ElementType::kInt64,
                   {1, static_cast<std::int64_t>(tokens.size())});
  // A place for audio may lie behind what the graph knows; what stands there is replaced.
  std::ranges::transform(tokens, ids.values<std::int64_t>().begin(),
                         [&](TokenId token) { return token < logits_ ? token : 0; });
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

/// One forward after what the slot holds; returns the logits of the last `kept` lines at least.
Tensor AudioLlmTarget::Decode(Slot& slot, const Tensor& embedded, std::size_t kept) {
  const auto rows = embedded.shape()[1];
  const auto past = static_cast<std::int64_t>(slot.length());
  const Tensor mask = seen_.View({1, past + rows});
  const Tensor positions = positions_.View({1, rows});
  std::vector<Session::Input> inputs = {{kEmbeds, &embedded}, {kMask, &mask}};
  if (decoder_->FindInput(kPositions) != nullptr) inputs.push_back({kPositions, &positions});
  Tensor wanted;
  if (const ValueInfo* const input = decoder_->FindInput(kKept)) {
    wanted = Tensor(decoder_->runtime(), input->type, Shape(input->shape.size(), 1));
    wanted.values<std::int64_t>()[0] = static_cast<std::int64_t>(kept);
    inputs.push_back({kKept, &wanted});
  }
  for (std::size_t i = 0; i < past_.size(); ++i) {
    inputs.push_back({past_[i].c_str(), &slot.past[i]});
  }
  std::vector<Tensor> outputs = decoder_->Run(inputs, outputs_, &canceller_);
  const Shape& shape = outputs.front().shape();
  if (shape.empty() || shape.back() != logits_ ||
      outputs.front().size() < kept * static_cast<std::size_t>(logits_)) {
    throw Error(decoder_->file().string() + ": says logits " + ShapeText(shape) + " of " +
                std::to_string(rows) + " rows, where bundle.txt promises a vocabulary of " +
                std::to_string(logits_) + "; pull the model again");
  }
  std::move(outputs.begin() + 1, outputs.end(), slot.past.begin());
  return std::move(outputs.front());
}

/// What the model says after `asked`, whose logits are the row'th from the end.
FirstToken AudioLlmTarget::Choose(const Tensor& logits, std::size_t row, const Row& asked) const {
  const auto count = static_cast<std::size_t>(logits_);
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
  if (prompt.empty() || prompt.size() > static_cast<std::size_t>(context_)) {
    throw Error("a prompt of " + std::to_string(prompt.size()) +
                " tokens does not fit the context of " + std::to_string(context_));
  }
  // Whole blocks, so that the numbers of a prompt do not depend on what was asked before.
  const auto same = static_cast<std::size_t>(std::ranges::mismatch(place.prompt, prompt).in1 -
                                             place.prompt.begin());
  std::size_t at = std::min(same, prompt.size() - 1) / kBlockRows * kBlockRows;
  place.prompt.resize(at);
  place.CutTo(at);
  std::span<const float> lines = place.heard->lines;
  lines = lines.subspan(
      width * static_cast<std::size_t>(std::ranges::count(prompt.first(at), audio_token_)));
  Tensor logits;
  while (at < prompt.size()) {
    const auto block = prompt.subspan(at, std::min(kBlockRows, prompt.size() - at));
    const Tensor embedded = Embed(block);
    lines = lines.subspan(PutAudio(block, lines, embedded));
    for (std::size_t i = 0; i < block.size(); ++i) {
      positions_.values<std::int64_t>()[i] = static_cast<std::int64_t>(at + i);
    }
    logits = Decode(place, embedded, 1);
    place.prompt.insert(place.prompt.end(), block.begin(), block.end());
    at += block.size();
  }
  return Choose(logits, 0, {.position = static_cast<int>(at) - 1, .choice = choice});
}

void AudioLlmTarget::Forward(std::span<const Row> rows, std::span<TokenId> next,
                             std::span<float> log_probability) {
  RequireFit(rows, context_);
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
  const int past = rows.front().at;
  std::vector<TokenId> tokens;
  for (const Row& row : rows) {
    if (row.shared != 0 || row.begin != 0 || row.at != past + static_cast<int>(tokens.size()) ||
        static_cast<std::size_t>(past) > place.length()) {
      throw Error("this decoder takes rows one behind the other, each of which sees all that is " +
                  std::string("before it: none at ") + std::to_string(row.at) + " behind " +
                  std::to_string(place.length()));
    }
    positions_.values<std::int64_t>()[tokens.size()] = row.position;
    tokens.push_back(row.token);
  }
  if (pad && tokens.size() % 2 != 0 && rows.back().at + 1 < context_) {
    positions_.values<std::int64_t>()[tokens.size()] = rows.back().position + 1;
    tokens.push_back(tokens.back());
  }
  const auto kept = static_cast<std::size_t>(past);
  place.prompt.resize(std::min(place.prompt.size(), kept));
  place.CutTo(kept);
  const Tensor logits = Decode(place, Embed(tokens), tokens.size());
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
