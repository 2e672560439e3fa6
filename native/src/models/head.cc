#include "as2d/models/head.h"

#include <algorithm>
#include <string>
#include <utility>

#include "as2d/error.h"

namespace as2d {
namespace {

constexpr std::size_t kLineSamples = 320;
constexpr std::size_t kSilenceLines = 50;
constexpr std::size_t kTilePositions = 16;
constexpr int kMostNumbers = 1 << 16;

}  // namespace

void RequireTarget(const Bundle& head, const Bundle& target, std::size_t encoding_width) {
  const std::string& wanted = head.Text("target");
  const std::string& id = target.Text("id");
  if (wanted != id) {
    throw Error(head.folder().string() + ": was made for the target '" + wanted + "', not for '" +
                id + "'; choose that target or another drafter");
  }
  const int width = head.Number("encoding_width", 1, kMostNumbers);
  if (static_cast<std::size_t>(width) != encoding_width) {
    throw Error(head.folder().string() + ": takes encodings of width " + std::to_string(width) +
                ", but those of '" + id + "' have " + std::to_string(encoding_width) +
                "; pull both models again");
  }
}

EncoderInput HeadInput(const Bundle& head, const Session& encoder) {
  const int width = head.Number("encoding_width", 1, kMostNumbers);
  const auto lines = static_cast<std::size_t>(head.Number("frames_per_position", 1, 64));
  const auto samples = static_cast<std::size_t>(head.Number("window_samples", 1, 1 << 24));
  EncoderInput::Kind kind{
      .name = "encoding", .width = static_cast<std::size_t>(width), .tile = lines * kTilePositions};
  const ValueInfo* const input = encoder.FindInput(kind.name);
  if (input == nullptr || input->shape.size() != 3 || input->shape[2] != width) {
    throw Error(encoder.file().string() + ": has no input '" + kind.name + "' of width " +
                std::to_string(width) + "; pull the model again");
  }
  // Whole tiles, unlike a window of audio.
  const std::size_t all = (samples + kLineSamples - 1) / kLineSamples;
  kind.window = (all + kind.tile - 1) / kind.tile * kind.tile;
  return EncoderInput(encoder.runtime(), std::move(kind));
}

void AppendSketch(std::span<const std::int64_t> sketch, TokenId blank,
                  std::vector<TokenId>* tokens) {
  TokenId last = blank;
  for (const std::int64_t token : sketch) {
    const TokenId before = std::exchange(last, static_cast<TokenId>(token));
    if (last != before && last != blank) tokens->push_back(last);
  }
}

std::span<const float> HeardOf(std::span<const float> encoding, std::size_t width,
                               std::size_t samples) {
  const std::size_t lines = (samples + kLineSamples - 1) / kLineSamples + kSilenceLines;
  return encoding.first(std::min(lines * width, encoding.size()));
}

}  // namespace as2d
