#include "as2d/models/moonshine.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "as2d/error.h"

namespace as2d {
namespace {

constexpr std::size_t kSampleRate = 16000;
// The authors' length limit is 64 s, but cost and errors grow from ten seconds on.
constexpr std::size_t kLongestPiece = 9 * kSampleRate;
// A piece shorter than this has no word in it, and the encoder's convolutions have no output.
constexpr std::size_t kShortestPiece = kSampleRate / 10;
// The authors' own bound on tokens per second of audio; a piece that says more is in a loop.
constexpr double kTokensPerSecond = 6.5;
constexpr std::size_t kSpareTokens = 4;

/// "present.0.decoder.key" -> "past_key_values.0.decoder.key".
std::string PastOf(const std::string& present) {
  return "past_key_values" + present.substr(std::min(present.find('.'), present.size()));
}

bool OfEncoder(const std::string& name) { return name.find(".encoder.") != std::string::npos; }

}  // namespace

std::vector<std::size_t> QuietCuts(std::span<const float> samples, std::size_t longest) {
  constexpr std::size_t kFrame = kSampleRate / 50;
  std::vector<std::size_t> ends;
  std::size_t begin = 0;
  while (samples.size() - begin > longest) {
    std::size_t quietest = begin + longest;
    double least = -1;
    for (std::size_t at = begin + longest * 2 / 3; at + kFrame <= begin + longest; at += kFrame) {
      double energy = 0;
      for (const float sample : samples.subspan(at, kFrame)) energy += sample * sample;
      if (least < 0 || energy <= least) {
        least = energy;
        quietest = at + kFrame / 2;
      }
    }
    ends.push_back(quietest);
    begin = quietest;
  }
  ends.push_back(samples.size());
  return ends;
}

MoonshineDrafter::MoonshineDrafter(std::shared_ptr<const Runtime> runtime, const Bundle& bundle,
                                   std::shared_ptr<WorkerPool> pool)
    : start_token_(bundle.RequiredToken("start")),
      end_token_(bundle.RequiredToken("end")),
      canceller_(runtime),
      runtime_(runtime) {
  SessionOptions options;
  options.pool = std::move(pool);
  encoder_ = Session::Load(runtime, bundle.File("encoder"), options);
  decoder_ = Session::Load(runtime, bundle.File("decoder"), options);
  for (const ValueInfo& output : decoder_->outputs()) {
    if (output.name == "logits") continue;
    present_names_.push_back(output.name);
    past_names_.push_back(PastOf(output.name));
    if (decoder_->FindInput(past_names_.back()) == nullptr) {
      throw Error(decoder_->file().string() + ": output '" + output.name +
                  "' has no input that takes it back; this is not a merged Moonshine decoder");
    }
  }
  output_names_.push_back("logits");
  for (const std::string& name : present_names_) output_names_.push_back(name.c_str());
}

void MoonshineDrafter::Begin(const Window& window) {
  samples_ = window.samples;
  ends_ = QuietCuts(samples_, kLongestPiece);
  std::reverse(ends_.begin(), ends_.end());
  begin_ = 0;
  in_piece_ = false;
  encoding_ = true;
}

bool MoonshineDrafter::Next(std::vector<TokenId>* tokens) {
  encoding_ = !in_piece_;
  if (!in_piece_) {
    if (ends_.empty()) return false;
    EncodePiece();
    return in_piece_ || !ends_.empty();
  }
  const TokenId token = Step();
  if (token == end_token_ || --tokens_left_ == 0) {
    in_piece_ = false;
  } else {
    tokens->push_back(token);
  }
  return in_piece_ || !ends_.empty();
}

void MoonshineDrafter::EncodePiece() {
  const std::size_t end = ends_.back();
  ends_.pop_back();
  const std::span<const float> piece = samples_.subspan(begin_, end - begin_);
  begin_ = end;
  if (piece.size() < kShortestPiece) return;

  const auto length = static_cast<std::int64_t>(piece.size());
  const Tensor audio(runtime_, ElementType::kFloat32, {1, length});
  std::copy(piece.begin(), piece.end(), audio.values<float>().begin());
  mask_ = Tensor(runtime_, ElementType::kInt64, {1, length});
  std::fill_n(mask_.values<std::int64_t>().begin(), piece.size(), 1);
  std::vector<Session::Input> inputs = {{"input_values", &audio}};
  if (encoder_->FindInput("attention_mask") != nullptr) {
    inputs.push_back({"attention_mask", &mask_});
  }
  const char* const output = "last_hidden_state";
  hidden_ = std::move(encoder_->Run(inputs, std::span(&output, 1), &canceller_).front());

  past_.clear();
  for (const std::string& name : past_names_) {
    Shape shape = decoder_->FindInput(name)->shape;
    shape.at(0) = 1;
    shape.at(2) = 0;
    past_.emplace_back(runtime_, ElementType::kFloat32, shape);
  }
  tokens_left_ =
      kSpareTokens +
      static_cast<std::size_t>(std::lround(kTokensPerSecond * static_cast<double>(piece.size()) /
                                           static_cast<double>(kSampleRate)));
  last_ = start_token_;
  first_step_ = true;
  in_piece_ = true;
}

TokenId MoonshineDrafter::Step() {
  const Tensor ids(runtime_, ElementType::kInt64, {1, 1});
  ids.values<std::int64_t>()[0] = last_;
  const Tensor use_cache(runtime_, ElementType::kBool, {1});
  use_cache.values<bool>()[0] = !first_step_;
  std::vector<Session::Input> inputs = {
      {"input_ids", &ids}, {"encoder_hidden_states", &hidden_}, {"use_cache_branch", &use_cache}};
  // The merged decoder wants the mask at the length of the audio, not of the hidden states.
  if (decoder_->FindInput("encoder_attention_mask") != nullptr) {
    inputs.push_back({"encoder_attention_mask", &mask_});
  }
  for (std::size_t i = 0; i < past_.size(); ++i) {
    inputs.push_back({past_names_[i].c_str(), &past_[i]});
  }
  std::vector<Tensor> outputs = decoder_->Run(inputs, output_names_, &canceller_);
  for (std::size_t i = 0; i < past_.size(); ++i) {
    // The cross-attention cache is made in the first step only and must be kept from there.
    if (first_step_ || !OfEncoder(past_names_[i])) past_[i] = std::move(outputs[i + 1]);
  }
  first_step_ = false;
  const std::span<const float> logits = outputs.front().values<float>();
  last_ = static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  return last_;
}

}  // namespace as2d
