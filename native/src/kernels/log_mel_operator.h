// Whisper's view of audio as an operator.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "as2d/runtime/tensor.h"
#include "call.h"
#include "kernels.h"

namespace as2d {

class LogMel {
 public:
  static constexpr const char* kName = "LogMel";
  static constexpr std::array kInputs = {ElementType::kFloat32, ElementType::kFloat32,
                                         ElementType::kFloat32};
  static constexpr std::size_t kRequiredInputs = 3;
  static constexpr std::array kOutputs = {ElementType::kFloat32};

  explicit LogMel(const Attributes& attributes) : hop_(attributes.Number("hop")) {}

  void Compute(Call& call) const {
    const auto audio = call.Input<float>(0);
    const auto basis = call.Input<float>(1);
    const auto filters = call.Input<float>(2);
    Require(basis.shape.size() == 4 && basis.at(0) == 2 && basis.at(2) > 0 && basis.at(3) == kPanel,
            "the basis is not in panels");
    const kernels::MelTables tables = {.basis = basis.data,
                                       .filters = filters.data,
                                       .half = basis.at(2),
                                       .panels = basis.at(1),
                                       .bands = filters.last()};
    Require(filters.rows() == tables.panels * kPanel && tables.bands % kPanel == 0,
            "the filters do not fit the basis");
    const std::size_t samples = audio.size();
    const std::size_t frames = samples / hop_;
    Require(samples > tables.half && frames > 0, "the audio is shorter than a frame");
    float* const y = call.Output<float>(
        0, {1, static_cast<std::int64_t>(frames), static_cast<std::int64_t>(tables.bands)});
    const std::vector<float> padded = Reflected(audio.data, samples, tables.half);
    constexpr std::size_t kTaskFrames = 48;
    const std::size_t tasks = (frames + kTaskFrames - 1) / kTaskFrames;
    const auto count = [&](std::size_t task) {
      return std::min(kTaskFrames, frames - task * kTaskFrames);
    };
    std::vector<float> most(tasks);
    call.Parallel(tasks, [&](std::size_t task) {
      const std::size_t frame = task * kTaskFrames;
      most[task] = kernels::Best().mel_energies(padded.data() + frame * hop_, count(task), hop_,
                                                tables, y + frame * tables.bands);
    });
    const float least = *std::max_element(most.begin(), most.end()) - kDynamicRange;
    call.Parallel(tasks, [&](std::size_t task) {
      kernels::Best().mel_scale(count(task) * tables.bands, least,
                                y + task * kTaskFrames * tables.bands);
    });
  }

 private:
  static constexpr float kDynamicRange = 8;

  /// The audio with its mirror image at both ends; the samples at the ends are there once.
  static std::vector<float> Reflected(const float* audio, std::size_t samples, std::size_t half) {
    std::vector<float> padded(samples + 2 * half);
    std::copy_n(audio, samples, padded.data() + half);
    for (std::size_t i = 0; i < half; ++i) {
      padded[half - 1 - i] = audio[i + 1];
      padded[half + samples + i] = audio[samples - 2 - i];
    }
    return padded;
  }

  const std::size_t hop_;
};

}  // namespace as2d
