#include "as2d/models/encoder_input.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "as2d/error.h"

namespace as2d {

EncoderInput::EncoderInput(std::shared_ptr<const Runtime> runtime, Kind kind)
    : kind_(std::move(kind)) {
  Shape shape = {1, static_cast<std::int64_t>(kind_.window)};
  if (kind_.width > 0) shape.push_back(static_cast<std::int64_t>(kind_.width));
  window_ = Tensor(std::move(runtime), ElementType::kFloat32, std::move(shape));
}

std::size_t EncoderInput::TilesFor(std::size_t entries) const {
  const std::size_t most = (kind_.window + kind_.tile - 1) / kind_.tile;
  return std::clamp<std::size_t>((entries + kind_.tile - 1) / kind_.tile, 1, most);
}

std::size_t EncoderInput::EntriesOf(std::size_t tiles) const {
  return std::min(tiles * kind_.tile, kind_.window);
}

std::size_t EncoderInput::Numbers(std::size_t tiles) const {
  return EntriesOf(tiles) * std::max<std::size_t>(kind_.width, 1);
}

void EncoderInput::Write(std::span<const float> entries, std::size_t tiles) {
  const std::span<float> written = window_.values<float>().first(Numbers(tiles));
  if (entries.size() > written.size()) {
    throw Error("a window of " + std::to_string(entries.size()) + " numbers is longer than the " +
                std::to_string(written.size()) + " that the encoder takes");
  }
  std::fill(std::ranges::copy(entries, written.begin()).out, written.end(), 0.0F);
}

Tensor EncoderInput::View(std::size_t tiles) const {
  Shape shape = window_.shape();
  shape[1] = static_cast<std::int64_t>(EntriesOf(tiles));
  return window_.View(std::move(shape));
}

}  // namespace as2d
