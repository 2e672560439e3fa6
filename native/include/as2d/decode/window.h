// The unit of work: one stretch of audio and what is asked of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "as2d/text/vocabulary.h"

namespace as2d {

struct Window {
  std::int64_t index = 0;       ///< counts up from 0 within a run
  std::vector<float> samples;   ///< 16 kHz mono PCM, at most what the target takes at once
  std::vector<TokenId> prompt;  ///< the target's tokens before the first committed one; not empty
  int max_tokens = 0;        ///< at most this many are committed, the end token not counted; >= 0
  std::string language;      ///< code of the spoken language, for drafters; "" where unknown
  bool translate = false;    ///< the text is wanted in English
  bool timestamps = false;   ///< the target says when its segments begin and end
  bool token_times = false;  ///< tell when each token was spoken, once the window is done
  float temperature = 0;     ///< see Choice
  std::uint32_t seed = 0;
  /// The same request as `prompt` in the tokens of a drafter with another vocabulary; empty for one
  /// that takes `prompt` itself. For language models.
  std::vector<TokenId> draft_prompt;
  /// Text, in the target's tokens, that the answer may repeat and that is not in the prompt.
  std::vector<TokenId> source;
};

/// Why the target stopped in a window.
enum class FinishReason : std::uint8_t {
  kEnd,        ///< it said its end token
  kLimit,      ///< `max_tokens` were committed
  kContext,    ///< its context is full
  kCancelled,  ///< the run was cancelled
};

}  // namespace as2d
