// The memory from which an encoder reads a window.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "as2d/runtime/session.h"
#include "as2d/runtime/tensor.h"

namespace as2d {

/// A graph's input [1, entries] or [1, entries, width]: samples, or lines of another encoder's. A
/// window fills as many tiles, of 16 of the encoder's positions, as it needs.
class EncoderInput {
 public:
  struct Kind {
    std::string name;        ///< of the graph's input
    std::size_t width = 0;   ///< numbers in an entry; 0 where an entry is a number
    std::size_t tile = 1;    ///< entries in a tile
    std::size_t window = 1;  ///< entries in a window: its last tile may be cut
  };

  EncoderInput(std::shared_ptr<const Runtime> runtime, Kind kind);

  const std::string& name() const { return kind_.name; }
  std::size_t width() const { return kind_.width; }
  std::size_t window_tiles() const { return TilesFor(kind_.window); }
  /// Tiles for so many entries: at least one, and no more than a window has.
  std::size_t TilesFor(std::size_t entries) const;
  std::size_t EntriesOf(std::size_t tiles) const;

  /// Writes entries to the start of so many tiles, and zeros to the rest of them. Throws Error when
  /// they do not fit.
  void Write(std::span<const float> entries, std::size_t tiles);

  /// What Write writes to.
  Tensor View(std::size_t tiles) const;

 private:
  std::size_t Numbers(std::size_t tiles) const;

  Kind kind_;
  Tensor window_;
};

}  // namespace as2d
