// Where a draft ends that has become of no use. Private to the models' sources.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "as2d/text/vocabulary.h"

namespace as2d {

/// The most tokens of a draft of so many samples: one that says more is in a loop, for fast speech
/// has five tokens a second. The spare ones are for short audio.
inline std::size_t MostDraftTokens(std::size_t samples) {
  constexpr std::size_t kTokensPerSecond = 7;
  constexpr std::size_t kSpareTokens = 12;
  return kSpareTokens + kTokensPerSecond * samples / 16000;
}

/// Whether the text ends with the same, however long, so many times in a row.
inline bool EndsInALoop(std::span<const TokenId> text) {
  constexpr std::size_t kRepeats = 3;
  constexpr std::size_t kLongestRepeat = 32;
  for (std::size_t length = 1; length <= kLongestRepeat && length * kRepeats <= text.size();
       ++length) {
    const auto tail = text.last(length * kRepeats);
    if (std::ranges::equal(tail.first(length * (kRepeats - 1)), tail.subspan(length))) return true;
  }
  return false;
}

}  // namespace as2d
