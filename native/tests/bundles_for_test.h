// The small random Whispers that the project's own builder makes for the tests, and something to
// hear.
#pragma once

#include <cmath>
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime_for_test.h"

namespace as2d {

/// "one" or "two": the same shape and vocabulary, other weights.
inline std::filesystem::path BundlePath(const std::string& name) {
  return std::filesystem::path(TestVariable("AS2D_TEST_BUNDLES")) / name;
}

inline std::vector<float> Sound(std::size_t length, float pitch) {
  std::vector<float> samples(length);
  for (std::size_t i = 0; i < length; ++i) {
    samples[i] =
        0.3F * std::sin(pitch * static_cast<float>(i)) * std::sin(1e-4F * static_cast<float>(i));
  }
  return samples;
}

}  // namespace as2d
