// What draft heads have in common: drafters that hear what the target's encoder says, not the
// audio.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "as2d/models/bundle.h"
#include "as2d/models/encoder_input.h"
#include "as2d/runtime/session.h"
#include "as2d/text/vocabulary.h"

namespace as2d {

/// Throws Error, naming the head's folder, unless the head was made for this target, whose encoding
/// has lines of so many numbers.
void RequireTarget(const Bundle& head, const Bundle& target, std::size_t encoding_width);

/// The lines that the graph of a head takes. Throws Error when they are not what the bundle says.
EncoderInput HeadInput(const Bundle& head, const Session& encoder);

/// What a head is given of the encoding of a window of so many samples, with `width` numbers in a
/// line: the lines of the audio, and those of a second of silence after it.
std::span<const float> HeardOf(std::span<const float> encoding, std::size_t width,
                               std::size_t samples);

/// Appends what a sketch says: what repeats is one token, and a blank is none.
void AppendSketch(std::span<const std::int64_t> sketch, TokenId blank,
                  std::vector<TokenId>* tokens);

}  // namespace as2d
