// The small random models that the project's own builder makes for the tests, and something to
// hear.
#pragma once

#include <unistd.h>

#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "runtime_for_test.h"

namespace as2d {

/// "one" or "two": Whispers of the same shape and vocabulary with other weights; "adapter" or
/// "ctc": heads for the target "one"; "speaker" or "prompter": language models of one vocabulary;
/// "listener" or "attender": audio language models with that vocabulary.
inline std::filesystem::path BundlePath(const std::string& name) {
  return std::filesystem::path(TestVariable("AS2D_TEST_BUNDLES")) / name;
}

/// A bundle with a line of its description replaced, in a folder beside it.
class ChangedBundle {
 public:
  ChangedBundle(const std::string& name, const std::string& line, const std::string& replacement)
      : folder_(BundlePath(name).parent_path() / ("changed-" + std::to_string(getpid()))) {
    std::filesystem::remove_all(folder_);
    std::filesystem::copy(BundlePath(name), folder_);
    std::ifstream original(BundlePath(name) / "bundle.txt");
    std::ofstream changed(folder_ / "bundle.txt");
    for (std::string text; std::getline(original, text);) {
      changed << (text.starts_with(line) ? replacement : text) << '\n';
    }
  }
  ~ChangedBundle() { std::filesystem::remove_all(folder_); }
  ChangedBundle(const ChangedBundle&) = delete;
  ChangedBundle& operator=(const ChangedBundle&) = delete;

  const std::filesystem::path& folder() const { return folder_; }

 private:
  const std::filesystem::path folder_;
};

inline std::vector<float> Sound(std::size_t length, float pitch) {
  std::vector<float> samples(length);
  for (std::size_t i = 0; i < length; ++i) {
    samples[i] =
        0.3F * std::sin(pitch * static_cast<float>(i)) * std::sin(1e-4F * static_cast<float>(i));
  }
  return samples;
}

}  // namespace as2d
