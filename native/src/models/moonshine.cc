#include "as2d/models/moonshine.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "as2d/models/quiet_cuts.h"
#include "grown_cache.h"
#include "published_graph.h"

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

bool OfEncoder(const std::string& name) { return name.find(".encoder.") != std::string::npos; }

}  // namespace

MoonshineDrafter::MoonshineDrafter(std::shared_ptr<const Runtime> runtime, const Bundle& bundle,
                                   std::shared_ptr<WorkerPool> pool)
    : start_token_(bundle.RequiredToken("start")),
      end_token_(bundle.RequiredToken("end")),
      canceller_(runtime),
      runtime_(runtime) {
  encoder_ = LoadPublished(runtime, bundle.File("encoder"), pool);
  decoder_ = LoadPublished(runtime, bundle.File("decoder"), std::move(pool));
  GrownCacheNames names = CachesOf(*decoder_);
  past_names_ = std::move(names.past);
  present_names_ = std::move(names.present);
  output_names_.push_back("logits");
  for (const std::string& name : present_names_) output_names_.push_back(name.c_str());
}

void MoonshineDrafter::Begin(const Window& window, std::span<const float> /*encoding*/) {
  pieces_.clear();
  std::size_t begin = 0;
  for (const std::size_t end : QuietCuts(window.samples, kLongestPiece)) {
    const std::span<const float> samples = std::span(window.samples).subspan(begin, end - begin);
    begin = end;
    if (samples.size() < kShortestPiece) continue;
    Piece piece;
    piece.samples = samples;
    piece.most_tokens = kSpareTokens + static_cast<std::size_t>(std::lround(
                                           kTokensPerSecond * static_cast<double>(samples.size()) /
                                           static_cast<double>(kSampleRate)));
    pieces_.push_back(std::move(piece));
  }
  text_.clear();
  EnterPiece(0);
}

void MoonshineDrafter::EnterPiece(std::size_t piece) {
  piece_ = piece;
  cached_ = 0;
  if (piece < pieces_.size()) pieces_[piece].first_token = text_.size();
}

bool MoonshineDrafter::Next(std::vector<TokenId>* tokens) {
  if (piece_ >= pieces_.size()) return false;
  Piece& piece = pieces_[piece_];
  if (!piece.encoded) {
    EncodePiece(piece);
    return true;
  }
  const TokenId token = Step(piece);
  if (token == end_token_ || text_.size() + 1 >= piece.first_token + piece.most_tokens) {
    EnterPiece(piece_ + 1);
  } else {
    text_.push_back(token);
    tokens->push_back(token);
  }
  return piece_ < pieces_.size();
}

void MoonshineDrafter::Follow(std::span<const TokenId> history) {
  const auto same =
      static_cast<std::size_t>(std::ranges::mismatch(text_, history).in1 - text_.begin());
  text_.assign(history.begin(), history.end());
  if (pieces_.empty()) return;
  // The furthest piece that was begun before the history ends.
  std::size_t piece = std::min(piece_, pieces_.size() - 1);
  while (piece > 0 && pieces_[piece].first_token > text_.size()) --piece;
  const std::size_t first = pieces_[piece].first_token;
  if (piece != piece_ || same < first || cached_ > 1 + same - first) cached_ = 0;
  piece_ = piece;
  // The last token is fed once more, for what follows it; these caches cannot be shortened.
  if (cached_ > text_.size() - first) cached_ = 0;
}

void MoonshineDrafter::EncodePiece(Piece& piece) {
  const auto length = static_cast<std::int64_t>(piece.samples.size());
  const Tensor audio(runtime_, ElementType::kFloat32, {1, length});
  std::ranges::copy(piece.samples, audio.values<float>().begin());
  piece.mask = Tensor(runtime_, ElementType::kInt64, {1, length});
  std::ranges::fill(piece.mask.values<std::int64_t>(), 1);
  std::vector<Session::Input> inputs = {{"input_values", &audio}};
  if (encoder_->FindInput("attention_mask") != nullptr) {
    inputs.push_back({"attention_mask", &piece.mask});
  }
  const char* const output = "last_hidden_state";
  piece.hidden = std::move(encoder_->Run(inputs, std::span(&output, 1), &canceller_).front());
  piece.encoded = true;
}

// The token after the text.
TokenId MoonshineDrafter::Step(const Piece& piece) {
  std::vector<TokenId> tokens = {start_token_};
  const std::span<const TokenId> text = std::span(text_).subspan(piece.first_token);
  tokens.insert(tokens.end(), text.begin(), text.end());
  if (cached_ == 0) {
    Feed(piece, tokens);
  } else {
    // With caches the published graph takes one token at a time.
    for (const TokenId token : std::span(tokens).subspan(cached_)) Feed(piece, {&token, 1});
  }
  cached_ = tokens.size();
  const auto width = static_cast<std::size_t>(logits_.shape().back());
  const std::span<const float> logits = logits_.values<float>().last(width);
  return static_cast<TokenId>(std::ranges::max_element(logits) - logits.begin());
}

void MoonshineDrafter::Feed(const Piece& piece, std::span<const TokenId> tokens) {
  const bool first = tokens.size() > 1 || cached_ == 0;
  if (first) {
    past_.clear();
    for (const std::string& name : past_names_) past_.push_back(EmptyCache(*decoder_, name));
  }
  const Tensor ids(runtime_, ElementType::kInt64, {1, static_cast<std::int64_t>(tokens.size())});
  std::ranges::copy(tokens, ids.values<std::int64_t>().begin());
  const Tensor use_cache(runtime_, ElementType::kBool, {1});
  use_cache.values<bool>()[0] = !first;
  std::vector<Session::Input> inputs = {{"input_ids", &ids},
                                        {"encoder_hidden_states", &piece.hidden},
                                        {"use_cache_branch", &use_cache}};
  // The merged decoder wants the mask at the length of the audio, not of the hidden states.
  if (decoder_->FindInput("encoder_attention_mask") != nullptr) {
    inputs.push_back({"encoder_attention_mask", &piece.mask});
  }
  for (std::size_t i = 0; i < past_.size(); ++i) {
    inputs.push_back({past_names_[i].c_str(), &past_[i]});
  }
  std::vector<Tensor> outputs = decoder_->Run(inputs, output_names_, &canceller_);
  for (std::size_t i = 0; i < past_.size(); ++i) {
    // The cross-attention cache is made in the first step only and must be kept from there.
    if (first || !OfEncoder(past_names_[i])) past_[i] = std::move(outputs[i + 1]);
  }
  logits_ = std::move(outputs.front());
}

float MoonshineDrafter::confidence() const {
  const auto width = static_cast<std::size_t>(logits_.shape().back());
  const std::span<const float> logits = logits_.values<float>().last(width);
  const float most = *std::ranges::max_element(logits);
  float sum = 0;
  for (const float logit : logits) sum += std::exp(logit - most);
  return 1 / sum;
}

}  // namespace as2d
