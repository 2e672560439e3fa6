// What the tokens of a model stand for, as bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace as2d {

/// A token of some vocabulary. Which vocabulary is said by the name of the variable or field.
using TokenId = std::int32_t;

/// An immutable table token -> bytes. Control, special and timestamp tokens stand for no bytes.
/// Thread-safe after construction.
class Vocabulary {
 public:
  /// Reads a bundle's `vocabulary.bin`: "A2DV", u32 version 1, u32 count, u32 flags, then for each
  /// token u16 length and that many bytes, all little endian. Throws Error when it is malformed.
  static Vocabulary Load(const std::string& path);

  /// `ranked`: ids are merge ranks, as in GPT-2 and tiktoken vocabularies, so that byte-pair
  /// merging by lowest id reproduces the model's own tokenizer.
  Vocabulary(std::vector<std::string> tokens, bool ranked);

  std::size_t size() const { return tokens_.size(); }
  bool ranked() const { return ranked_; }

  /// Bytes of `token`; empty for tokens without text and for ids outside the vocabulary.
  std::string_view Bytes(TokenId token) const;

  bool operator==(const Vocabulary& other) const { return tokens_ == other.tokens_; }

 private:
  std::vector<std::string> tokens_;
  bool ranked_;
};

}  // namespace as2d
