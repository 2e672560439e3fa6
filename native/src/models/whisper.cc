#include "as2d/models/whisper.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "as2d/error.h"

namespace as2d {
namespace {

SessionOptions OptionsFor(std::shared_ptr<WorkerPool> pool) {
  SessionOptions options;
  options.pool = std::move(pool);
  return options;
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
      canceller_(runtime) {
  encoder_ = Session::Load(runtime, bundle.File("encoder"), OptionsFor(pool));
  decoder_ = Session::Load(runtime, bundle.File("decoder"), OptionsFor(pool));

  const auto floats = [&](Shape shape) {
    return Tensor(runtime, ElementType::kFloat32, std::move(shape));
  };
  audio_ = floats({1, static_cast<std::int64_t>(window_samples_)});
  encoder_binding_ = std::make_unique<Binding>(encoder_);
  encoder_binding_->BindInput("audio", audio_);
  // What the encoder says of the audio is what the decoder asks of it, by name.
  for (const ValueInfo& output : encoder_->outputs()) {
    const ValueInfo* const input = decoder_->FindInput(output.name);
    // The decoder has one more dimension, the slots, in front.
    if (input == nullptr || input->type != output.type || input->shape.empty() ||
        !std::equal(input->shape.begin() + 1, input->shape.end(), output.shape.begin(),
                    output.shape.end())) {
      throw Error(decoder_->file().string() + " and " + encoder_->file().string() +
                  " do not belong together: they differ in '" + output.name +
                  "'; pull the model again");
    }
    Shape shape = input->shape;
    shape[0] = 1;
    cross_.emplace_back(output.name, Tensor(runtime, output.type, std::move(shape)));
    encoder_binding_->BindOutput(output.name, cross_.back().second.View(output.shape));
  }
  for (const ValueInfo& input : decoder_->inputs()) {
    if (input.name.starts_with("past_")) {
      if (input.shape.size() != 4 || input.shape[2] != context_) {
        throw Error(decoder_->file().string() + ": input '" + input.name + "' is " +
                    ShapeText(input.shape) + ", which does not hold the context of " +
                    std::to_string(context_) + " that bundle.txt promises; pull the model again");
      }
      Shape shape = input.shape;
      shape[0] = 1;
      cache_.emplace_back(input.name.substr(std::string("past_").size()),
                          Tensor(runtime, input.type, std::move(shape)));
    } else if (input.name.starts_with("cross_") && encoder_->FindOutput(input.name) == nullptr) {
      throw Error(encoder_->file().string() + ": has no output '" + input.name +
                  "', which the decoder needs; pull the model again");
    }
  }

  tokens_ = Tensor(runtime, ElementType::kInt64, {1, context_});
  positions_ = Tensor(runtime, ElementType::kInt64, {context_});
  places_ = Tensor(runtime, ElementType::kInt32, {context_, 4});
  next_ = Tensor(runtime, ElementType::kInt64, {1, context_});
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
  StepOf(2, false, !bundle_.languages().empty());  // what does not fit is told now, not in a run
}

void WhisperModel::Encode(std::span<const float> samples) {
  if (samples.size() > window_samples_) {
    throw Error("a window of " + std::to_string(samples.size()) + " samples is longer than the " +
                std::to_string(window_samples_) + " that the encoder takes");
  }
  if (encoded_valid_ &&
      std::equal(samples.begin(), samples.end(), encoded_.begin(), encoded_.end())) {
    return;
  }
  encoded_valid_ = false;
  const std::span<float> audio = audio_.values<float>();
  const auto end = std::copy(samples.begin(), samples.end(), audio.begin());
  std::fill(end, audio.end(), 0.0F);
  encoder_binding_->Run(&canceller_);
  encoded_.assign(samples.begin(), samples.end());
  encoded_valid_ = true;
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
  for (const auto& [name, tensor] : cross_) binding.BindInput(name, tensor);
  for (const auto& [suffix, tensor] : cache_) {
    binding.BindInput("past_" + suffix, tensor);
    binding.BindOutput("present_" + suffix, tensor);  // in place
  }
  binding.BindOutput("next", next_.View({1, count}));
  if (languages) binding.BindOutput("language_logits", language_logits_);
  step = std::move(made);
  return *step;
}

void WhisperModel::Place(std::size_t row, int at) {
  positions_.values<std::int64_t>()[row] = at;
  std::int32_t* const place = &places_.values<std::int32_t>()[4 * row];
  std::fill_n(place, 4, 0);  // slot 0, and everything up to the row
  place[1] = at;
}

void WhisperModel::Forward(std::span<const TokenId> rows, int past, bool begin,
                           std::span<TokenId> next) {
  const std::size_t count = rows.size();
  if (count == 0 || past < 0 ||
      static_cast<std::size_t>(past) + count > static_cast<std::size_t>(context_)) {
    throw Error("a step of " + std::to_string(count) + " rows at position " + std::to_string(past) +
                " does not fit the context");
  }
  for (std::size_t i = 0; i < count; ++i) {
    tokens_.values<std::int64_t>()[i] = rows[i];
    Place(i, past + static_cast<int>(i));
  }
  StepOf(count, begin, false).binding.Run(&canceller_);
  const std::span<const std::int64_t> chosen = next_.values<std::int64_t>();
  for (std::size_t i = 0; i < count; ++i) next[i] = static_cast<TokenId>(chosen[i]);
}

std::vector<std::pair<std::string, float>> WhisperModel::LanguageProbabilities() {
  const auto& languages = bundle_.languages();
  if (languages.empty()) throw Error("this model knows one language only");
  // Two rows, for the model is exact for even numbers only; the second one's result is not used.
  const TokenId start = bundle_.RequiredToken("start");
  for (std::size_t i = 0; i < 2; ++i) {
    tokens_.values<std::int64_t>()[i] = start;
    Place(i, static_cast<int>(i));
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

TokenId WhisperTarget::Prompt(std::span<const TokenId> prompt) {
  rows_.assign(prompt.begin(), prompt.end());
  // An even number of rows, as in every other step; the caches beyond the prompt are overwritten.
  if (model_->even_rows_only() && rows_.size() % 2 != 0) rows_.push_back(rows_.back());
  next_.resize(rows_.size());
  model_->Forward(rows_, 0, true, next_);
  return next_[prompt.size() - 1];
}

void WhisperDrafter::Begin(const Window& window) {
  samples_ =
      std::span(window.samples).first(std::min(window.samples.size(), model_->window_samples()));
  encoded_ = false;
  encoding_ = true;
  const Bundle& bundle = model_->bundle();
  prompt_.assign(1, bundle.RequiredToken("start"));
  for (const auto& [code, token] : bundle.languages()) {
    if (code == window.language) {
      prompt_.push_back(token);
      prompt_.push_back(bundle.RequiredToken(window.translate ? "translate" : "transcribe"));
      break;
    }
  }
  prompt_.push_back(bundle.RequiredToken("no_timestamps"));
}

bool WhisperDrafter::Next(std::vector<TokenId>* tokens) {
  if (!encoded_) {
    model_->Encode(samples_);
    encoded_ = true;
    past_ = 0;
    return true;
  }
  encoding_ = false;
  std::array<TokenId, 8> next{};
  if (past_ == 0) {
    model_->Forward(prompt_, 0, true, std::span(next).first(prompt_.size()));
    past_ = static_cast<int>(prompt_.size());
    last_ = next[prompt_.size() - 1];
  } else {
    model_->Forward(std::span(&last_, 1), past_++, false, std::span(next).first(1));
    last_ = next[0];
  }
  if (last_ == model_->end_token()) return false;
  tokens->push_back(last_);
  return past_ < model_->context();
}

}  // namespace as2d
