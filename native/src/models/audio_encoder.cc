#include "as2d/models/audio_encoder.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "as2d/error.h"
#include "published_graph.h"

namespace as2d {

AudioEncoder::AudioEncoder(const std::shared_ptr<const Runtime>& runtime, const Bundle& bundle,
                           const std::shared_ptr<WorkerPool>& pool)
    : window_samples_(static_cast<std::size_t>(bundle.Number("window_samples", 1, 1 << 24))),
      most_windows_(static_cast<std::size_t>(bundle.Number("most_windows", 1, 1 << 12))),
      pad_(bundle.Flag("pad_to_window")),
      width_(static_cast<std::size_t>(bundle.Number("width", 1, 1 << 20))),
      features_(Session::Load(runtime, bundle.File("features"), OwnOperators(pool))),
      encoder_(LoadPublished(runtime, bundle.File("encoder"), pool)) {
  for (const auto& graph : {features_, encoder_}) {
    if (graph->inputs().size() != 1 || graph->outputs().empty()) {
      throw Error(graph->file().string() + ": has " + std::to_string(graph->inputs().size()) +
                  " inputs, where one is for the audio; choose another export");
    }
    RequireFloat(*graph, graph->inputs().front());
    RequireFloat(*graph, graph->outputs().front());
  }
}

std::vector<float> AudioEncoder::Encode(std::span<const float> samples,
                                        const Canceller& canceller) const {
  if (samples.size() > most_samples()) {
    throw Error("audio of " + std::to_string(samples.size()) + " samples is longer than the " +
                std::to_string(most_samples()) + " that the model takes at once");
  }
  const auto run = [&](Session& graph, const Tensor& input) {
    const Session::Input in = {graph.inputs().front().name.c_str(), &input};
    const char* const out = graph.outputs().front().name.c_str();
    return std::move(graph.Run({&in, 1}, {&out, 1}, &canceller).front());
  };
  std::vector<float> lines;
  while (!samples.empty()) {
    const auto window = samples.first(std::min(samples.size(), window_samples_));
    samples = samples.subspan(window.size());
    const std::size_t length = pad_ ? window_samples_ : window.size();
    const Tensor audio(features_->runtime(), ElementType::kFloat32,
                       {1, static_cast<std::int64_t>(length)});
    std::ranges::copy(window, audio.values<float>().begin());
    const Tensor said = run(*encoder_, run(*features_, audio));
    if (said.shape().empty() || said.shape().back() != static_cast<std::int64_t>(width_)) {
      throw Error(encoder_->file().string() + ": says " + ShapeText(said.shape()) +
                  " of a window, not lines of the " + std::to_string(width_) +
                  " numbers that bundle.txt promises; pull the model again");
    }
    const std::span<const float> numbers = said.values<float>();
    lines.insert(lines.end(), numbers.begin(), numbers.end());
  }
  return lines;
}

}  // namespace as2d
