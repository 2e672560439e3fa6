// A draft in one vocabulary, cut anew into the target's tokens.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "as2d/text/vocabulary.h"

namespace as2d {

/// Length in bytes of the first word of `text`, or 0 when more text could still lengthen it
/// (never 0 when `final` and `text` is not empty). Words are those of GPT-2's pre-tokenizer
/// (Radford et al. 2019): an optional space and a run of letters, of digits or of other marks, or
/// an English contraction; bytes above 0x7f count as letters.
std::size_t FirstWord(std::string_view text, bool final);

/// Cuts words into tokens of one vocabulary. Immutable and thread-safe after construction.
class WordTokenizer {
 public:
  /// `vocabulary` must outlive this.
  explicit WordTokenizer(const Vocabulary& vocabulary);

  /// Appends the tokens of `word`: by byte-pair merging of the lowest id first where the
  /// vocabulary is ranked, by longest match otherwise. Returns false, and appends nothing, when
  /// the vocabulary cannot spell the word.
  bool Append(std::string_view word, std::vector<TokenId>* tokens) const;

 private:
  bool AppendByRank(std::string_view word, std::vector<TokenId>* tokens) const;
  bool AppendByLongestMatch(std::string_view word, std::vector<TokenId>* tokens) const;

  const Vocabulary& vocabulary_;
  std::unordered_map<std::string_view, TokenId> ids_;
  std::size_t longest_ = 0;
};

/// Turns the append-only tokens of a drafter into append-only tokens of the target, word by word
/// as words become complete. Ids are never mapped by number: only bytes cross over. The result is
/// a proposal, so it need not be the cut that the target itself would choose. Used by one thread.
class Retokenizer {
 public:
  /// Both must outlive this.
  Retokenizer(const Vocabulary& source, const WordTokenizer& target);

  /// Forgets everything; for the next window.
  void Reset();

  /// Takes one more token of the drafter; appends the target tokens of every word that it
  /// completes.
  void Push(TokenId source_token, std::vector<TokenId>* target_tokens);

  /// No more tokens come: appends what is left.
  void Finish(std::vector<TokenId>* target_tokens);

 private:
  void Drain(bool final, std::vector<TokenId>* target_tokens);

  const Vocabulary& source_;
  const WordTokenizer& target_;
  std::string pending_;
};

}  // namespace as2d
