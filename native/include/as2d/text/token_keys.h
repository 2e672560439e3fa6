// Which tokens say the same word, give or take case, a leading space and punctuation.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "as2d/text/vocabulary.h"

namespace as2d {

/// Maps a token to a key that it shares with the tokens that differ from it only in ASCII case,
/// white space or punctuation. Immutable and thread-safe after construction.
class TokenKeys {
 public:
  /// Every token is only like itself: for scripted models without a vocabulary.
  TokenKeys() = default;
  explicit TokenKeys(const Vocabulary& vocabulary);

  /// Ids outside the vocabulary, and tokens that stand for no bytes, are only like themselves.
  std::int32_t Key(TokenId token) const;

  /// True when `token` is nothing but punctuation or white space.
  bool IsMark(TokenId token) const { return Key(token) == kMark; }

 private:
  // No token has this id: models count from 0.
  static constexpr std::int32_t kMark = std::numeric_limits<std::int32_t>::min();
  std::vector<std::int32_t> keys_;
};

}  // namespace as2d
