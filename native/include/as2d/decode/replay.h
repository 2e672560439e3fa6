// What a draft would have been worth, without running a model.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "as2d/text/token_keys.h"
#include "as2d/text/vocabulary.h"

namespace as2d {

/// Verify steps that a target which says `text` and then `end_token` takes with `draft` all ready
/// before the first one and at most `budget` candidates a step, under DecoupledDrafting. The first
/// token comes of the prompt and is no step's. Both are tokens of the target. Does not block.
std::size_t ReplaySteps(std::span<const TokenId> text, std::span<const TokenId> draft,
                        TokenId end_token, std::size_t budget,
                        const std::shared_ptr<const TokenKeys>& keys);

/// What a committed prefix finds in a draft that is all ready.
struct DraftPlace {
  std::size_t place = 0;  ///< draft tokens that the prefix stands for: candidates begin there
  std::size_t run = 0;    ///< how many candidates from there are what the target says
};

/// For each committed prefix of `text`, of one token and more, where it ends in `draft`. The end of
/// either is a token like any other. A prefix that is out of reach stands for all of the draft.
/// Does not block.
std::vector<DraftPlace> ReplayTrace(std::span<const TokenId> text, std::span<const TokenId> draft,
                                    TokenId end_token, const TokenKeys& keys);

}  // namespace as2d
