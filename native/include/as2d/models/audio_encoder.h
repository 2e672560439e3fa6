// What an audio language model makes of audio before its decoder sees it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "as2d/models/bundle.h"
#include "as2d/platform/worker_pool.h"
#include "as2d/runtime/session.h"

namespace as2d {

/// Two graphs. `features` is this project's own: f32 [1, samples] -> f32 [1, bands, frames], as the
/// model's processor has them of one window. `encoder` is as published: those -> f32 [.., lines,
/// width], a line for each place that the prompt keeps for audio. Used by one thread at a time.
class AudioEncoder {
 public:
  /// Loads both graphs onto the lane of `pool`. Throws Error, naming the file.
  AudioEncoder(const std::shared_ptr<const Runtime>& runtime, const Bundle& bundle,
               const std::shared_ptr<WorkerPool>& pool);

  /// Lines of one window of `samples` (16 kHz mono) after the other; none of no samples. Throws
  /// Error, also for more than most_samples(), and Cancelled.
  std::vector<float> Encode(std::span<const float> samples, const Canceller& canceller) const;

  std::size_t most_samples() const { return window_samples_ * most_windows_; }
  /// Numbers in a line.
  std::size_t width() const { return width_; }

 private:
  const std::size_t window_samples_;
  const std::size_t most_windows_;
  const bool pad_;           // silence fills up a window
  const std::size_t width_;  // of a line
  const std::shared_ptr<Session> features_;
  const std::shared_ptr<Session> encoder_;
};

}  // namespace as2d
