#include "clips.h"

#include <bit>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <span>
#include <string>

#include "as2d/error.h"

namespace as2d::runner {
namespace {

static_assert(std::endian::native == std::endian::little, "clips are little-endian");

template <typename Sample>
std::vector<Sample> ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff bytes = file.tellg();
  if (!file || bytes < 0) throw Error(path.string() + ": cannot be read");
  std::vector<Sample> samples(static_cast<std::size_t>(bytes) / sizeof(Sample));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(samples.data()),
            static_cast<std::streamsize>(samples.size() * sizeof(Sample)));
  if (!file) throw Error(path.string() + ": cannot be read to its end");
  return samples;
}

}  // namespace

std::vector<Window> Clips::WindowsOf(const Unit& unit) {
  Load(unit.clip);
  std::vector<Window> windows;
  for (const Piece& piece : unit.windows) {
    if (piece.first > samples_.size() || piece.count > samples_.size() - piece.first) {
      throw Error(job_.clips[unit.clip].file.string() + ": has " + std::to_string(samples_.size()) +
                  " samples, too few for a window of " + std::to_string(piece.count) + " from " +
                  std::to_string(piece.first));
    }
    const auto samples = std::span(samples_).subspan(piece.first, piece.count);
    Window& window = windows.emplace_back();
    window.index = std::ssize(windows) - 1;
    window.samples.assign(samples.begin(), samples.end());
    window.prompt = unit.prompt;
    window.max_tokens = unit.max_tokens;
    window.language = unit.language;
  }
  return windows;
}

void Clips::Load(std::size_t clip) {
  if (loaded_ == clip) return;
  const Clip& file = job_.clips[clip];
  if (file.is_s16) {
    samples_.clear();
    for (const std::int16_t sample : ReadFile<std::int16_t>(file.file)) {
      samples_.push_back(static_cast<float>(sample) / 32768.0F);
    }
  } else {
    samples_ = ReadFile<float>(file.file);
  }
  loaded_ = clip;
}

}  // namespace as2d::runner
