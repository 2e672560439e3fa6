// The caches of decoders as others publish them: inputs `past_key_values.…`, which outputs
// `present.…` return with the new positions behind the old ones. Private to the models' sources.
#pragma once

#include <string>
#include <vector>

#include "as2d/runtime/session.h"

namespace as2d {

/// Their names, in one order.
struct GrownCacheNames {
  std::vector<std::string> past;     // inputs ...
  std::vector<std::string> present;  // ... and the outputs that replace them
};

/// All outputs of the decoder but `logits`. Throws Error for one that no input takes back.
GrownCacheNames CachesOf(const Session& decoder);

/// A cache [1, heads, 0, head size] for an input. Throws Error if that is no cache of float32, or
/// leaves heads or their size open.
Tensor EmptyCache(const Session& decoder, const std::string& past);

}  // namespace as2d
