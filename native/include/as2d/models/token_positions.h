// Which part of the audio each token of a text is of.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace as2d {

/// Where in the audio the tokens of a text begin, from how much a decoder's cross-attention looks
/// at each position when it is about to say them.
///
/// Each head's weights are put on one scale over the rows, smoothed along the audio by a median of
/// seven, and averaged; dynamic time warping (Sakoe and Chiba 1978) then finds the monotonic path
/// through rows and positions that is looked at most. The method is that of openai/whisper
/// (timing.py); the heads to use are in a model's configuration.
///
/// Args: `weights` [rows, heads, positions], each at least 1; row i comes before token i is said,
/// and the last row after the last token. Returns for each row the first position of its part of
/// the path: ascending, and the last one is where the last token ends.
std::vector<std::size_t> TokenPositions(std::span<const float> weights, std::size_t rows,
                                        std::size_t heads, std::size_t positions);

}  // namespace as2d
