// The text that a drafting decoder continues, and how much of it the caches hold.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "as2d/decode/models.h"
#include "as2d/text/vocabulary.h"

namespace as2d {

/// A prompt, and what was said after it; of one window at a time.
class SpokenText {
 public:
  /// Nothing is said or cached. The text holds at most `most` tokens, the prompt counted.
  void Begin(std::vector<TokenId> prompt, std::size_t most) {
    text_ = std::move(prompt);
    prompt_ = text_.size();
    most_ = most;
    cached_ = 0;
  }

  std::span<const TokenId> said() const { return std::span(text_).subspan(prompt_); }
  /// Tokens that may still be said.
  std::size_t room() const { return most_ - std::min(most_, text_.size()); }
  /// Tokens that the next forward is to be fed: at least the last one.
  std::size_t fresh() const { return text_.size() - cached_; }

  /// Appends a row for each of them.
  void AppendFresh(std::vector<Row>* rows) const {
    for (std::size_t i = cached_; i < text_.size(); ++i) {
      const int at = static_cast<int>(i);
      rows->push_back({.token = text_[i], .position = at, .at = at});
    }
  }

  /// A forward was fed what was fresh, and so many of `tokens` after that, which are said now.
  void Say(std::span<const TokenId> tokens, std::size_t fed) {
    cached_ = text_.size() + std::min(fed, tokens.size());
    text_.insert(text_.end(), tokens.begin(), tokens.end());
  }

  /// Puts `history` in the place of what was said; what the caches hold of it stays there.
  void Follow(std::span<const TokenId> history) {
    const auto same =
        static_cast<std::size_t>(std::ranges::mismatch(said(), history).in1 - said().begin());
    text_.resize(prompt_);
    text_.insert(text_.end(), history.begin(), history.end());
    // The last token is fed once more, for what follows it; a prompt as a whole, as the first time.
    cached_ = history.empty() ? 0 : std::min({cached_, prompt_ + same, text_.size() - 1});
  }

 private:
  std::vector<TokenId> text_;
  std::size_t prompt_ = 0;  // its length
  std::size_t most_ = 0;
  std::size_t cached_ = 0;  // of text_
};

}  // namespace as2d
