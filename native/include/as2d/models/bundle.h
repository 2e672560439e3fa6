// The description of a model on disk.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "as2d/text/vocabulary.h"

namespace as2d {

/// A bundle's `bundle.txt`: the line "as2d-bundle 1", then `key: value` lines; a repeated key is a
/// list. Immutable.
class Bundle {
 public:
  /// Reads the description, not the files that it names. Throws Error, naming the file.
  static Bundle Open(const std::filesystem::path& folder);

  const std::filesystem::path& folder() const { return folder_; }

  bool Has(const std::string& key) const { return values_.contains(key); }
  /// The value of a key that must be there once. Throws Error when it is not.
  const std::string& Text(const std::string& key) const;
  /// The same as a whole number in [low, high]. Throws Error when it is something else.
  int Number(const std::string& key, int low, int high) const;
  /// Whether the value of such a key is "yes". Throws Error when it is neither that nor "no".
  bool Flag(const std::string& key) const;
  /// Full path of the file that `key` names inside the folder.
  std::filesystem::path File(const std::string& key) const;
  /// Id of a special token, e.g. "end"; none when the model has no such token.
  std::optional<TokenId> Token(const std::string& name) const;
  /// The same for one that must be there. Throws Error when it is not.
  TokenId RequiredToken(const std::string& name) const;
  /// Ids listed under a key, separated by spaces; empty when there is no such key.
  std::vector<TokenId> Tokens(const std::string& key) const;
  /// Language codes with their tokens, in token order; empty for models without language tokens.
  const std::vector<std::pair<std::string, TokenId>>& languages() const { return languages_; }

 private:
  Bundle() = default;
  [[noreturn]] void Refuse(const std::string& what) const;
  int ParseNumber(std::string_view text, int low, int high, const std::string& key) const;

  std::filesystem::path folder_;
  std::map<std::string, std::vector<std::string>> values_;
  std::vector<std::pair<std::string, TokenId>> languages_;
};

}  // namespace as2d
