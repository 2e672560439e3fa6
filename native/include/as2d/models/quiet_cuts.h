// Longer audio in pieces that a drafter hears one after the other.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace as2d {

/// Where to cut `samples` (16 kHz) so that no piece is longer than `longest` samples: ends of the
/// pieces, the last one being samples.size(). Each cut is in the middle of the quietest 20 ms of
/// the last third of the longest piece that could be, so that few words are cut in two.
std::vector<std::size_t> QuietCuts(std::span<const float> samples, std::size_t longest);

}  // namespace as2d
