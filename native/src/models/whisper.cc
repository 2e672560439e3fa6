#include "as2d/models/whisper.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "as2d/error.h"
#include "as2d/models/head.h"
#include "as2d/models/quiet_cuts.h"
#include "as2d/models/token_positions.h"
#include "decoder_rows.h"
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

void Softmax(std::span<float> values) {
  const float most = *std::ranges::max_element(values);
  float sum = 0;
  for (float& value : values) sum += value = std::exp(value - most);
  for (float& value : values) value /= sum;
}

constexpr std::string_view kEncoding = "encoding";
constexpr std::string_view kSketch = "sketch";
// Whisper's decoder begins its first segment within the first second.
constexpr int kMostInitialTimestamp = 50;

std::string QueryOf(int layer) { return "query_" + std::to_string(layer); }

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
  choices_ = ChoiceRows(runtime, context_);
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
  const std::vector<TokenId> heads = bundle_.Tokens("alignment_heads");
  const int heads_a_layer = heads.empty() ? 1 : bundle_.Number("heads", 1, 1 << 10);
  for (const int number : heads) {
    const AlignmentHead head{.layer = number / heads_a_layer, .head = number % heads_a_layer};
    if (decoder_->FindOutput(QueryOf(head.layer)) == nullptr) {
      throw Error(decoder_->file().string() + ": has no output '" + QueryOf(head.layer) +
                  "', which bundle.txt promises; pull the model again");
    }
    alignment_heads_.push_back(head);
  }
  if (!bundle_.languages().empty()) {
    language_logits_ = floats({1, 2, static_cast<std::int64_t>(bundle_.languages().size())});
  }
  ReserveSlots(1);
  StepOf(2, bundle_.languages().empty()
                ? kPlain
                : kLanguages);  // what does not fit is told now, not in a run
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

WhisperModel::Step& WhisperModel::StepOf(std::size_t rows, int kind) {
  std::unique_ptr<Step>& step = steps_[{rows, kind}];
  if (step) return *step;
  auto made = std::make_unique<Step>(decoder_);
  Binding& binding = made->binding;
  const auto count = static_cast<std::int64_t>(rows);
  binding.BindInput("tokens", tokens_.View({1, count}));
  binding.BindInput("positions", positions_.View({count}));
  binding.BindInput("places", places_.View({count, 4}));
  choices_.BindTo(&binding, count);
  binding.BindInput("suppress", (kind & kBegin) != 0 ? begin_suppress_ : suppress_);
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
  if ((kind & kLanguages) != 0) binding.BindOutput("language_logits", language_logits_);
  if ((kind & kQueries) != 0) {
    for (const auto& [layer, tensor] : queries_) {
      binding.BindOutput(QueryOf(layer), tensor.View({1, count, tensor.shape().back()}));
    }
  }
  step = std::move(made);
  return *step;
}

void WhisperModel::SetRow(std::size_t index, const Row& row) {
  tokens_.values<std::int64_t>()[index] = row.token;
  positions_.values<std::int64_t>()[index] = row.position;
  const std::array<std::int32_t, 4> place = {row.slot, row.at, row.shared, row.begin};
  std::ranges::copy(
      place, places_.values<std::int32_t>().begin() + static_cast<std::ptrdiff_t>(4 * index));
  choices_.Set(index, row);
}

void WhisperModel::Put(std::span<const Row> rows) {
  RequireFit(rows, context_);
  for (std::size_t i = 0; i < rows.size(); ++i) SetRow(i, rows[i]);
}

void WhisperModel::Forward(std::span<const Row> rows, bool begin, std::span<TokenId> next) {
  Put(rows);
  StepOf(rows.size(), begin ? kBegin : kPlain).binding.Run(&canceller_);
  const std::span<const std::int64_t> chosen = next_.values<std::int64_t>();
  for (std::size_t i = 0; i < rows.size(); ++i) next[i] = static_cast<TokenId>(chosen[i]);
}

std::vector<float> WhisperModel::Alignment(std::span<const Row> rows, std::size_t positions) {
  if (alignment_heads_.empty()) return {};
  for (const AlignmentHead& head : alignment_heads_) {
    if (queries_.contains(head.layer)) continue;
    const Shape shape = decoder_->FindOutput(QueryOf(head.layer))->shape;
    queries_.emplace(head.layer, Tensor(encoder_->runtime(), ElementType::kFloat32,
                                        {1, context_, shape.back()}));
  }
  Put(rows);
  StepOf(rows.size(), kQueries).binding.Run(&canceller_);
  std::vector<float> weights(rows.size() * alignment_heads_.size() * positions);
  std::vector<float> keys;
  for (std::size_t i = 0; i < alignment_heads_.size(); ++i) {
    const AlignmentHead& head = alignment_heads_[i];
    const std::size_t size = Keys(head.layer, head.head, rows.front().slot, positions, &keys);
    const Tensor& queries = queries_.at(head.layer);
    const auto width = static_cast<std::size_t>(queries.shape().back());
    for (std::size_t row = 0; row < rows.size(); ++row) {
      const std::span<const float> query = queries.values<float>().subspan(
          row * width + static_cast<std::size_t>(head.head) * size, size);
      const std::span<float> line =
          std::span(weights).subspan((row * alignment_heads_.size() + i) * positions, positions);
      for (std::size_t d = 0; d < size; ++d) {
        const float* const channel = keys.data() + d * positions;
        for (std::size_t t = 0; t < positions; ++t) line[t] += query[d] * channel[t];
      }
      Softmax(line);
    }
  }
  return weights;
}

/// The keys of the audio in one head, [head size, positions], divided by the root of the head size,
/// which is returned.
std::size_t WhisperModel::Keys(int layer, int head, int slot, std::size_t positions,
                               std::vector<float>* keys) const {
  const auto find = [&](const std::string& name) -> const Tensor& {
    return std::ranges::find(cross_, name, &std::pair<std::string, Tensor>::first)->second;
  };
  const Tensor& packed = find("cross_k_" + std::to_string(layer));
  const Tensor& scales = find("cross_k_scale_" + std::to_string(layer));
  const auto size = static_cast<std::size_t>(scales.shape().back());
  const auto heads = static_cast<std::size_t>(scales.shape()[1]);
  const std::size_t at = static_cast<std::size_t>(slot) * heads + static_cast<std::size_t>(head);
  const std::span<const float> scale = scales.values<float>().subspan(at * size, size);
  // [tiles, size / 4, 16, 4], 128 added; of what is encoded, which may be less than there is room.
  const std::size_t tile = 16 * size;
  const std::span<const std::uint8_t> bytes =
      packed.values<std::uint8_t>().subspan(at * tiles_ * tile, tiles_ * tile);
  const float root = 1.0F / std::sqrt(static_cast<float>(size));
  keys->resize(positions * size);
  for (std::size_t t = 0; t < positions; ++t) {
    for (std::size_t i = 0; i < size; ++i) {
      const std::uint8_t byte = bytes[t / 16 * tile + i / 4 * 64 + t % 16 * 4 + i % 4];
      (*keys)[i * positions + t] = (static_cast<float>(byte) - 128.0F) * scale[i] * root;
    }
  }
  return size;
}

void WhisperModel::Move(int slot, int from, int to, int count) {
  for (const auto& [name, tensor] : cache_) MoveCached(tensor, slot, from, to, count);
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
  StepOf(2, kLanguages).binding.Run(&canceller_);
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

ChoiceRules WhisperTarget::Rules(const Window& window) const {
  const Bundle& bundle = model_->bundle();
  ChoiceRules rules;
  if (window.timestamps) {
    rules = ChoiceRules(model_->end_token(), bundle.RequiredToken("timestamp_begin"),
                        kMostInitialTimestamp);
  }
  rules.Sample(window.temperature, window.seed);
  return rules;
}

/// Where in a prompt a text begins: behind what was said before. Its size where it does not.
std::size_t WhisperTarget::StartOf(std::span<const TokenId> prompt) const {
  const TokenId start = model_->bundle().RequiredToken("start");
  const auto last = std::find(prompt.rbegin(), prompt.rend(), start);
  return last == prompt.rend() ? prompt.size() : static_cast<std::size_t>(prompt.rend() - last) - 1;
}

FirstToken WhisperTarget::Prompt(std::span<const TokenId> prompt, const Choice& choice, int slot) {
  rows_.clear();
  for (const TokenId token : prompt) AppendRow(token, slot, &rows_);
  rows_.back().choice = choice;
  // That nobody speaks is told in the place of the language, after the token that begins the text:
  // a row of its own, for that token may be the last one of the prompt.
  const std::optional<TokenId> no_speech = model_->bundle().Token("no_speech");
  const std::size_t start = StartOf(prompt);
  const bool asked = no_speech && start < prompt.size();
  if (asked) {
    const int place = static_cast<int>(start);
    AppendRow(prompt[start], slot, &rows_);
    Row& row = rows_.back();
    row.position = row.shared = place;
    row.begin = row.at;
    row.choice.score = *no_speech;
  }
  // An even number of rows, as in every other step; the caches beyond the prompt are overwritten.
  if (model_->even_rows_only() && rows_.size() % 2 != 0) AppendRow(prompt.back(), slot, &rows_);
  next_.resize(rows_.size());
  model_->Forward(rows_, true, next_);
  FirstToken first{.token = next_[prompt.size() - 1],
                   .log_probability = model_->log_probability(prompt.size() - 1)};
  if (asked) first.no_speech = std::exp(model_->log_probability(prompt.size()));
  return first;
}

void WhisperTarget::Forward(std::span<const Row> rows, std::span<TokenId> next,
                            std::span<float> log_probability) {
  model_->Forward(rows, false, next);
  for (std::size_t i = 0; i < rows.size(); ++i) log_probability[i] = model_->log_probability(i);
}

std::vector<float> WhisperTarget::TokenTimes(const Window& window, std::span<const TokenId> text,
                                             int slot) {
  const std::size_t heads = model_->alignment_heads();
  if (heads == 0) return {};
  const Bundle& bundle = model_->bundle();
  const TokenId no_timestamps = bundle.RequiredToken("no_timestamps");
  rows_.clear();
  const std::span<const TokenId> prompt = window.prompt;
  for (const TokenId token : prompt.subspan(StartOf(prompt))) {
    if (token != no_timestamps) AppendRow(token, slot, &rows_);
  }
  const std::size_t first = rows_.size();  // this row, and those after it, look at the text
  AppendRow(no_timestamps, slot, &rows_);
  const auto room = static_cast<std::size_t>(model_->context()) - rows_.size() - 1;
  for (const TokenId token : text.first(std::min(text.size(), room))) {
    AppendRow(token, slot, &rows_);
  }
  const std::size_t rows = rows_.size() - first;
  if (model_->even_rows_only() && rows_.size() % 2 != 0) {
    AppendRow(model_->end_token(), slot, &rows_);
  }
  const std::size_t samples = std::min(window.samples.size(), model_->window_samples());
  const std::size_t positions = std::max<std::size_t>(1, samples / kPositionSamples);
  const std::vector<float> weights = model_->Alignment(rows_, positions);
  const std::vector<std::size_t> begins = TokenPositions(
      std::span(weights).subspan(first * heads * positions, rows * heads * positions), rows, heads,
      positions);
  std::vector<float> times;
  for (const std::size_t position : begins) {
    times.push_back(static_cast<float>(position * kPositionSamples) / 16000.0F);
  }
  times.resize(text.size() + 1, times.back());
  return times;
}

void WhisperDrafter::Begin(const Window& window, std::span<const float>) {
  const Bundle& bundle = model_->bundle();
  prompt_ = {bundle.RequiredToken("start")};
  for (const auto& [code, token] : bundle.languages()) {
    if (code == window.language) {
      prompt_.push_back(token);
      prompt_.push_back(bundle.RequiredToken(window.translate ? "translate" : "transcribe"));
      break;
    }
  }
  prompt_.push_back(bundle.RequiredToken("no_timestamps"));
  pieces_.clear();
  std::size_t begin = 0;
  for (const std::size_t end : QuietCuts(window.samples, model_->window_samples())) {
    pieces_.push_back({.samples = std::span(window.samples).subspan(begin, end - begin)});
    begin = end;
  }
  EnterPiece(0);
}

void WhisperDrafter::EnterPiece(std::size_t piece) {
  piece_ = piece;
  encoded_ = false;
  auto most = static_cast<std::size_t>(model_->context());
  if (brief_) {
    most = std::min(most, prompt_.size() + MostDraftTokens(pieces_[piece].samples.size()));
  }
  text_.Begin(prompt_, most);
}

// False when there is none.
bool WhisperDrafter::EnterNextPiece() {
  if (piece_ + 1 == pieces_.size()) return false;
  pieces_[piece_ + 1].first_token = pieces_[piece_].first_token + text_.said().size();
  EnterPiece(piece_ + 1);
  return true;
}

bool WhisperDrafter::Next(std::vector<TokenId>* tokens) {
  if (!encoded_) {
    const std::span<const float> samples = pieces_[piece_].samples;
    brief_ ? model_->EncodeBriefly(samples) : model_->Encode(samples, 0);
    encoded_ = true;
    return true;
  }
  if (text_.room() == 0) return EnterNextPiece();
  rows_.clear();
  text_.AppendFresh(&rows_);
  next_.resize(rows_.size());
  // The rules for a first token are those of the prompt's last row.
  model_->Forward(rows_, text_.said().empty(), next_);
  confidence_ = std::exp(model_->log_probability(rows_.size() - 1));
  const TokenId next = next_.back();
  if (next == model_->end_token()) {
    text_.Say({}, 0);
    return EnterNextPiece();
  }
  text_.Say({&next, 1}, 0);
  tokens->push_back(next);
  if (text_.room() == 0 || (brief_ && EndsInALoop(text_.said()))) return EnterNextPiece();
  return true;
}

void WhisperDrafter::Follow(std::span<const TokenId> history) {
  // The furthest piece that was begun before the history ends.
  std::size_t piece = piece_;
  while (pieces_[piece].first_token > history.size()) --piece;
  if (piece != piece_) EnterPiece(piece);
  text_.Follow(history.subspan(pieces_[piece].first_token));
}

}  // namespace as2d
