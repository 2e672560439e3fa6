#include "as2d/models/whisper.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "as2d/error.h"
#include "as2d/models/head.h"
#include "draft_limits.h"

namespace as2d {
namespace {

constexpr std::size_t kPositionSamples = 320;
constexpr std::size_t kTilePositions = 16;
constexpr std::size_t kTileSamples = kTilePositions * kPositionSamples;
// Words at the very end of the audio come out worse without it.
constexpr std::size_t kSilenceAfter = 16000;

EncoderInput InputOf(const Bundle& bundle, const Session& encoder, std::size_t window_samples) {
  if (bundle.Text("family") == "head") return HeadInput(bundle, encoder);
  return EncoderInput(
      encoder.runtime(),
      {.name = "audio", .width = 0, .tile = kTileSamples, .window = window_samples});
}

/// The shape of what the encoder says of one window, or the decoder hears of several, with the
/// dimension that depends on the audio's length filled in: the only one left open beside the slots.
Shape AudioShape(const ValueInfo& info, std::size_t tiles) {
  Shape shape = info.shape;
  const auto count = static_cast<std::int64_t>(tiles);
  std::ranges::replace(shape, -1, info.name.starts_with("cross_v") ? 4 * count : count);
  return shape;
}

constexpr std::string_view kEncoding = "encoding";
constexpr std::string_view kSketch = "sketch";

/// One more row of a text that begins with rows[0] at position 0.
void AppendRow(TokenId token, int slot, std::vector<Row>* rows) {
  const int at = static_cast<int>(rows->size());
  rows->push_back({.token = token, .position = at, .slot = slot, .at = at});
}

}  // namespace

struct WhisperModel::Step {
  explicit Step(std::shared_ptr<Session> session) : binding(std::move(session)) {}
  Binding binding;
};

WhisperModel::~WhisperModel() = default;

WhisperModel::WhisperModel(std::shared_ptr<const Runtime> runtime, const Bundle& bundle,
                           std::shared_ptr<WorkerPool> pool)
    : bundle_(bundle),
      context_(bundle.Number("context", 4, 1 << 16)),
      vocabulary_size_(bundle.Number("vocabulary_size", 2, 1 << 24)),
      window_samples_(static_cast<std::size_t>(bundle.Number("window_samples", 1, 1 << 24))),
      end_token_(bundle.RequiredToken("end")),
      even_rows_only_(bundle.Text("row_invariance") == "even"),
      canceller_(runtime),
      encoder_(Session::Load(runtime, bundle.File("encoder"), OwnOperators(pool))),
      decoder_(Session::Load(runtime, bundle.File("decoder"), OwnOperators(pool, 1))),
      input_(InputOf(bundle, *encoder_, window_samples_)),
      tiles_(input_.window_tiles()) {
  const auto floats = [&](Shape shape) {
    return Tensor(runtime, ElementType::kFloat32, std::move(shape));
  };
  // What the encoder says of the audio is what the decoder asks of it, by name; the decoder has one
  // more dimension, the slots, in front.
  for (const ValueInfo& output : encoder_->outputs()) {
    if (output.name == kEncoding || output.name == kSketch) continue;
    const ValueInfo* const input = decoder_->FindInput(output.name);
    if (input == nullptr || input->type != output.type || input->shape.empty() ||
        !std::equal(input->shape.begin() + 1, input->shape.end(), output.shape.begin(),
                    output.shape.end())) {
      throw Error(decoder_->file().string() + " and " + encoder_->file().string() +
                  " do not belong together: they differ in '" + output.name +
                  "'; pull the model again");
    }
  }
  for (const ValueInfo& input : decoder_->inputs()) {
    if (input.name.starts_with("past_") &&
        (input.shape.size() != 4 || input.shape[2] != context_)) {
      throw Error(decoder_->file().string() + ": input '" + input.name + "' is " +
                  ShapeText(input.shape) + ", which does not hold the context of " +
                  std::to_string(context_) + " that bundle.txt promises; pull the model again");
    }
    if (input.name.starts_with("cross_") && encoder_->FindOutput(input.name) == nullptr) {
      throw Error(encoder_->file().string() + ": has no output '" + input.name +
                  "', which the decoder needs; pull the model again");
    }
  }

  if (!hears_encoding()) {
    const ValueInfo* const encoding = encoder_->FindOutput(kEncoding);
    if (encoding == nullptr || encoding->shape.size() != 3 || encoding->shape[2] < 1) {
      throw Error(encoder_->file().string() + ": has no output '" + std::string(kEncoding) +
                  "'; pull the model again");
    }
    encoding_ = floats({1, EncodedPositions(), encoding->shape[2]});
  }

  if (const ValueInfo* const sketch = encoder_->FindOutput(kSketch);
      hears_encoding() && sketch != nullptr && sketch->type == ElementType::kInt64) {
    sketch_ = Tensor(runtime, ElementType::kInt64, {1, SketchPlaces(input_.window_tiles())});
  }

  tokens_ = Tensor(runtime, ElementType::kInt64, {1, context_});
  positions_ = Tensor(runtime, ElementType::kInt64, {context_});
  places_ = Tensor(runtime, ElementType::kInt32, {context_, 4});
  next_ = Tensor(runtime, ElementType::kInt64, {1, context_});
  log_prob_ = floats({1, context_});
  suppress_ = floats({vocabulary_size_});
  begin_suppress_ = floats({vocabulary_size_});
  const auto suppress = [&](const Tensor& tensor, const std::string& key) {
    for (const TokenId token : bundle_.Tokens(key)) {
      if (token >= vocabulary_size_) {
        throw Error((bundle_.folder() / "bundle.txt").string() + ": '" + key +
                    "' names a token outside the vocabulary");
      }
      tensor.values<float>()[static_cast<std::size_t>(token)] =
          -std::numeric_limits<float>::infinity();
    }
  };
  suppress(suppress_, "suppress");
  suppress(begin_suppress_, "suppress");
  suppress(begin_suppress_, "begin_suppress");
  if (!bundle_.languages().empty()) {
    language_logits_ = floats({1, 2, static_cast<std::int64_t>(bundle_.languages().size())});
  }
  ReserveSlots(1);
  StepOf(2, false, !bundle_.languages().empty());  // what does not fit is told now, not in a run
}

void WhisperModel::ReserveSlots(int slots) {
  if (slots <= slots_) return;
  const std::shared_ptr<const Runtime>& runtime = encoder_->runtime();
  // Nothing is let go before all is there: without memory for more, the model still works.
  std::vector<std::pair<std::string, Tensor>> cross;
  std::vector<std::pair<std::string, Tensor>> cache;
  for (const ValueInfo& output : encoder_->outputs()) {
    if (output.name == kEncoding || output.name == kSketch) continue;
    Shape shape = AudioShape(output, input_.window_tiles());
    shape.insert(shape.begin(), slots);
    cross.emplace_back(output.name, Tensor(runtime, output.type, std::move(shape)));
  }
  for (const ValueInfo& input : decoder_->inputs()) {
    if (!input.name.starts_with("past_")) continue;
    Shape shape = input.shape;
    shape[0] = slots;
    cache.emplace_back(input.name.substr(std::string("past_").size()),
                       Tensor(runtime, input.type, std::move(shape)));
  }
  if (detected_) {  // slot 0 is to be used again
    for (std::size_t i = 0; i < cross_.size(); ++i) {
      std::memcpy(cross[i].second.data(), cross_[i].second.data(),
                  cross_[i].second.bytes() / static_cast<std::size_t>(slots_));
    }
  }
  steps_.clear();
  encoder_bindings_.clear();
  cross_ = std::move(cross);
  cache_ = std::move(cache);
  slots_ = slots;
}

void WhisperModel::SetTiles(std::size_t tiles) {
  if (tiles == tiles_) return;
  tiles_ = tiles;
  steps_.clear();
  encoder_bindings_.clear();
}

Binding& WhisperModel::EncoderOf(int slot) {
  std::unique_ptr<Binding>& binding = encoder_bindings_[slot];
  if (binding) return *binding;
  auto made = std::make_unique<Binding>(encoder_);
  made->BindInput(input_.name(), input_.View(tiles_));
  if (!encoding_.empty()) {
    made->BindOutput(std::string(kEncoding),
                     encoding_.View({1, EncodedPositions(), encoding_.shape().back()}));
  }
  if (!sketch_.empty()) {
    made->BindOutput(std::string(kSketch), sketch_.View({1, SketchPlaces(tiles_)}));
  }
  for (const auto& [name, tensor] : cross_) {
    const Shape shape = AudioShape(*encoder_->FindOutput(name), tiles_);
    std::size_t one = 1;
    for (const std::int64_t size : shape) one *= static_cast<std::size_t>(size);
    made->BindOutput(name, tensor.View(shape, static_cast<std::size_t>(slot) * one));
  }
  binding = std::move(made);
  return *binding;
}

void WhisperModel::Encode(std::span<const float> samples, int slot) {
  const bool done = slot == 0 && detected_ && std::ranges::equal(samples, *detected_);
  if (slot == 0) detected_.reset();
  if (done) return;
  RunEncoder(samples, input_.window_tiles(), slot);
}

void WhisperModel::EncodeBriefly(std::span<const float> samples) {
  detected_.reset();
  RunEncoder(samples, input_.TilesFor(samples.size() + kSilenceAfter), 0);
}

void WhisperModel::EncodeLines(std::span<const float> lines) {
  RunEncoder(lines, input_.TilesFor(lines.size() / line_width()), 0);
}

/// Of the audio that is encoded.
std::int64_t WhisperModel::EncodedPositions() const {
  return static_cast<std::int64_t>(input_.EntriesOf(tiles_) / kPositionSamples);
}

std::span<const float> WhisperModel::encoding() const {
  const auto positions = static_cast<std::size_t>(EncodedPositions());
  return encoding_.values<float>().first(positions * encoding_width());
}

/// Of the sketch of so many tiles: one for every line.
std::int64_t WhisperModel::SketchPlaces(std::size_t tiles) const {
  return static_cast<std::int64_t>(input_.EntriesOf(tiles));
}

std::span<const std::int64_t> WhisperModel::sketch() const {
  if (sketch_.empty()) return {};
  return sketch_.values<std::int64_t>().first(static_cast<std::size_t>(SketchPlaces(tiles_)));
}

void WhisperModel::RunEncoder(std::span<const float> heard, std::size_t tiles, int slot) {
  SetTiles(tiles);
  input_.Write(heard, tiles);
  if (slot < 0 || slot >= slots_) throw Error("there is no slot " + std::to_string(slot));
  EncoderOf(slot).Run(&canceller_);
}

WhisperModel::Step& WhisperModel::StepOf(std::size_t rows, bool begin, bool languages) {
  std::unique_ptr<Step>& step = steps_[{rows, (begin ? 1 : 0) + (languages ? 2 : 0)}];
  if (step) return *step;
  auto made = std::make_unique<Step>(decoder_);
  Binding& binding = made->binding;
  const auto count = static_cast<std::int64_t>(rows);
  binding.BindInput("tokens", tokens_.View({1, count}));
  binding.BindInput("positions", positions_.View({count}));
  binding.BindInput("places", places_.View({count, 4}));
  binding.BindInput("suppress", begin ? begin_suppress_ : suppress_);
  for (const auto& [name, tensor] : cross_) {
    Shape shape = AudioShape(*encoder_->FindOutput(name), tiles_);
    shape.insert(shape.begin(), slots_);
    binding.BindInput(name, tensor.View(std::move(shape)));
  }
  for (const auto& [suffix, tensor] : cache_) {
    binding.BindInput("past_" + suffix, tensor);
    binding.BindOutput("present_" + suffix, tensor);  // in place
  }
  binding.BindOutput("next", next_.View({1, count}));
  binding.BindOutput("log_prob", log_prob_.View({1, count}));
  if (languages) binding.BindOutput("language_logits", language_logits_);
  step = std::move(made);
  return *step;
}

void WhisperModel::SetRow(std::size_t index, const Row& row) {
  tokens_.values<std::int64_t>()[index] = row.token;
  positions_.values<std::int64_t>()[index] = row.position;
  const std::array<std::int32_t, 4> place = {row.slot, row.at, row.shared, row.begin};
  std::ranges::copy(
      place, places_.values<std::int32_t>().begin() + static_cast<std::ptrdiff_t>(4 * index));
}

void WhisperModel::Forward(std::span<const Row> rows, bool begin, std::span<TokenId> next) {
  const auto fits = [&](const Row& row) {
    return row.position >= 0 && row.position < context_ && row.at >= 0 && row.at < context_;
  };
  if (rows.empty() || rows.size() > static_cast<std::size_t>(context_) ||
      !std::ranges::all_of(rows, fits)) {
    throw Error("a step of " + std::to_string(rows.size()) + " rows does not fit the context of " +
                std::to_string(context_));
  }
  for (std::size_t i = 0; i < rows.size(); ++i) SetRow(i, rows[i]);
  StepOf(rows.size(), begin, false).binding.Run(&canceller_);
  const std::span<const std::int64_t> chosen = next_.values<std::int64_t>();
  for (std::size_t i = 0; i < rows.size(); ++i) next[i] = static_cast<TokenId>(chosen[i]);
}

void WhisperModel::Move(int slot, int from, int to, int count) {
  for (const auto& [name, tensor] : cache_) {
    // [slots, heads, context, head size]
    const auto heads = static_cast<std::ptrdiff_t>(tensor.shape()[1]);
    const auto size = static_cast<std::ptrdiff_t>(tensor.shape()[3]);
    const auto one = static_cast<std::ptrdiff_t>(context_) * size;
    float* head = tensor.values<float>().data() + slot * heads * one;
    for (std::ptrdiff_t h = 0; h < heads; ++h, head += one) {
      std::copy_n(head + from * size, count * size, head + to * size);
    }
  }
}

std::vector<std::pair<std::string, float>> WhisperModel::LanguageProbabilities(
    std::span<const float> samples) {
  const auto& languages = bundle_.languages();
  if (languages.empty()) throw Error("this model knows one language only");
  detected_.reset();
  RunEncoder(samples, input_.window_tiles(), 0);
  detected_.emplace(samples.begin(), samples.end());
  // Two rows, for the model may be exact for even numbers only; the second one's result is not
  // used.
  const TokenId start = bundle_.RequiredToken("start");
  for (int i = 0; i < 2; ++i) {
    SetRow(static_cast<std::size_t>(i), {.token = start, .position = i, .at = i});
  }
  StepOf(2, false, true).binding.Run(&canceller_);
  const std::span<const float> logits = language_logits_.values<float>().first(languages.size());
  const float most = *std::max_element(logits.begin(), logits.end());
  float sum = 0;
  std::vector<std::pair<std::string, float>> probabilities;
  for (std::size_t i = 0; i < languages.size(); ++i) {
    probabilities.emplace_back(languages[i].first, std::exp(logits[i] - most));
    sum += probabilities.back().second;
  }
  for (auto& [code, probability] : probabilities) probability /= sum;
  return probabilities;
}

TokenId WhisperTarget::Prompt(std::span<const TokenId> prompt, int slot) {
  rows_.clear();
  for (const TokenId token : prompt) AppendRow(token, slot, &rows_);
  // An even number of rows, as in every other step; the caches beyond the prompt are overwritten.
  if (model_->even_rows_only() && rows_.size() % 2 != 0) AppendRow(prompt.back(), slot, &rows_);
  next_.resize(rows_.size());
  model_->Forward(rows_, true, next_);
  return next_[prompt.size() - 1];
}

void WhisperDrafter::Begin(const Window& window, std::span<const float>) {
  samples_ =
      std::span(window.samples).first(std::min(window.samples.size(), model_->window_samples()));
  encoded_ = false;
  const Bundle& bundle = model_->bundle();
  std::vector<TokenId> prompt = {bundle.RequiredToken("start")};
  for (const auto& [code, token] : bundle.languages()) {
    if (code == window.language) {
      prompt.push_back(token);
      prompt.push_back(bundle.RequiredToken(window.translate ? "translate" : "transcribe"));
      break;
    }
  }
  prompt.push_back(bundle.RequiredToken("no_timestamps"));
  auto most = static_cast<std::size_t>(model_->context());
  if (brief_) most = std::min(most, prompt.size() + MostDraftTokens(samples_.size()));
  text_.Begin(std::move(prompt), most);
}

bool WhisperDrafter::Next(std::vector<TokenId>* tokens) {
  if (!encoded_) {
    brief_ ? model_->EncodeBriefly(samples_) : model_->Encode(samples_, 0);
    encoded_ = true;
    return true;
  }
  if (text_.room() == 0) return false;
  rows_.clear();
  text_.AppendFresh(&rows_);
  next_.resize(rows_.size());
  // The rules for a first token are those of the prompt's last row.
  model_->Forward(rows_, text_.said().empty(), next_);
  confidence_ = std::exp(model_->log_probability(rows_.size() - 1));
  const TokenId next = next_.back();
  if (next == model_->end_token()) {
    text_.Say({}, 0);
    return false;
  }
  text_.Say({&next, 1}, 0);
  tokens->push_back(next);
  if (brief_ && EndsInALoop(text_.said())) return false;
  return text_.room() > 0;
}

}  // namespace as2d
