#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "as2d/decode/window.h"
#include "job.h"

namespace as2d::runner {

/// Samples of the job's clips; those of one clip are kept, which is what the next unit needs.
class Clips {
 public:
  /// `job` must outlive it.
  explicit Clips(const Job& job) : job_(job) {}

  /// The windows of a unit as the engine takes them. Throws Error: the file cannot be read, or is
  /// too short.
  std::vector<Window> WindowsOf(const Unit& unit);

 private:
  void Load(std::size_t clip);

  const Job& job_;
  std::size_t loaded_ = static_cast<std::size_t>(-1);
  std::vector<float> samples_;
};

}  // namespace as2d::runner
