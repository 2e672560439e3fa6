#include "as2d/models/merged_decoder.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "as2d/error.h"
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
              "', which a merged decoder needs; choose another export");
}

/// A cache keeps its first `length` positions, in its own memory.
void CutGrown(Tensor* cache, std::int64_t length) {
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

MergedDecoder::MergedDecoder(const std::shared_ptr<const Runtime>& runtime, const Bundle& bundle,
                             std::shared_ptr<WorkerPool> pool)
    : context_(bundle.Number("context", 4, 1 << 20)),
      vocabulary_size_(bundle.Number("vocabulary_size", 2, 1 << 24)),
      in_place_(bundle.Has("caches") && bundle.Text("caches") == "in_place"),
      session_(LoadPublished(runtime, bundle.File("decoder"), std::move(pool))),
      seen_(runtime, ElementType::kInt64, {1, context_}) {
  GrownCacheNames caches = CachesOf(*session_);
  past_ = std::move(caches.past);
  present_ = std::move(caches.present);
  outputs_.push_back(kLogits);
  for (const std::string& name : present_) outputs_.push_back(name.c_str());
  for (const ValueInfo& input : session_->inputs()) {
    const std::array known = {kEmbeds, kMask, kPositions, kKept};
    if (std::ranges::find(known, std::string_view(input.name)) == known.end() &&
        std::ranges::find(past_, input.name) == past_.end()) {
      throw Error(session_->file().string() + ": no driver for a decoder with the input '" +
                  input.name + "'; choose another export");
    }
  }
  RequireFloat(*session_, Require(*session_, session_->FindInput(kEmbeds), kEmbeds));
  Require(*session_, session_->FindInput(kMask), kMask);
  RequireFloat(*session_, Require(*session_, session_->FindOutput(kLogits), kLogits));
  std::ranges::fill(seen_.values<std::int64_t>(), 1);
  Begin();  // what is no cache is told now, not in a run
}

MergedDecoder::Text MergedDecoder::Begin() const {
  Text text;
  for (const std::string& name : past_) {
    Tensor cache = EmptyCache(*session_, name);
    if (in_place_) {
      Shape shape = cache.shape();
      shape[2] = context_;
      cache = Tensor(session_->runtime(), ElementType::kFloat32, std::move(shape));
    }
    text.caches_.push_back(std::move(cache));
  }
  return text;
}

void MergedDecoder::Cut(Text* text, std::size_t length) const {
  text->length_ = length;
  if (in_place_) return;
  for (Tensor& cache : text->caches_) CutGrown(&cache, static_cast<std::int64_t>(length));
}

Tensor MergedDecoder::Run(Text* text, const Tensor& embedded,
                          std::span<const std::int64_t> positions, std::size_t kept,
                          const Canceller& canceller) const {
  const auto rows = static_cast<std::int64_t>(positions.size());
  const Tensor mask = seen_.View({1, static_cast<std::int64_t>(text->length_) + rows});
  std::vector<Session::Input> inputs = {{kEmbeds, &embedded}, {kMask, &mask}};
  Tensor places;
  if (session_->FindInput(kPositions) != nullptr) {
    places = Tensor(session_->runtime(), ElementType::kInt64, {1, rows});
    std::ranges::copy(positions, places.values<std::int64_t>().begin());
    inputs.push_back({kPositions, &places});
  }
  Tensor wanted;
  if (const ValueInfo* const input = session_->FindInput(kKept)) {
    wanted = Tensor(session_->runtime(), ElementType::kInt64, Shape(input->shape.size(), 1));
    wanted.values<std::int64_t>()[0] = static_cast<std::int64_t>(kept);
    inputs.push_back({kKept, &wanted});
  }
  std::vector<Tensor> outputs;
  if (in_place_) {
    if (!text->step_) {
      text->step_ = std::make_unique<Binding>(session_);
      text->step_->BindOutput(kLogits);
      for (std::size_t i = 0; i < past_.size(); ++i) {
        text->step_->BindInput(past_[i], text->caches_[i]);
        text->step_->BindOutput(present_[i], text->caches_[i]);
      }
    }
    for (const Session::Input& input : inputs) text->step_->BindInput(input.name, *input.tensor);
    text->step_->Run(&canceller);
    outputs = text->step_->TakeOutputs();
  } else {
    for (std::size_t i = 0; i < past_.size(); ++i) {
      inputs.push_back({past_[i].c_str(), &text->caches_[i]});
    }
    outputs = session_->Run(inputs, outputs_, &canceller);
  }
  const Shape& shape = outputs.front().shape();
  if (shape.empty() || shape.back() != vocabulary_size_ ||
      outputs.front().size() < kept * static_cast<std::size_t>(vocabulary_size_)) {
    throw Error(session_->file().string() + ": says logits " + ShapeText(shape) + " of " +
                std::to_string(rows) + " rows, where bundle.txt promises a vocabulary of " +
                std::to_string(vocabulary_size_) + "; pull the model again");
  }
  if (!in_place_) std::move(outputs.begin() + 1, outputs.end(), text->caches_.begin());
  text->length_ += positions.size();
  return std::move(outputs.front());
}

}  // namespace as2d
