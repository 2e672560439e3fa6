// What a verify step commits.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "as2d/decode/window.h"
#include "as2d/text/vocabulary.h"

namespace as2d {

/// What one step of the target adds to the committed prefix.
struct Verdict {
  std::size_t accepted = 0;   ///< candidates that equal the target's own choice
  std::size_t committed = 0;  ///< tokens appended to `tokens`: accepted ones and the target's own
  bool finished = false;      ///< `reason` holds
  FinishReason reason = FinishReason::kEnd;
};

/// Greedy verification (Leviathan et al. 2023 at temperature 0): accepts the longest run of
/// `candidates` equal to the target's own choices, then takes the target's next token.
/// `next[i]` is the target's choice after the committed prefix and candidates[0..i); needs
/// next.size() >= candidates.size() + 1. Appends at most `room` tokens to `tokens`; an end token
/// finishes the window, is not appended, and nothing after it is.
Verdict Verify(std::span<const TokenId> candidates, std::span<const TokenId> next,
               TokenId end_token, std::size_t room, std::vector<TokenId>* tokens);

}  // namespace as2d
