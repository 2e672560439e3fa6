#include "as2d/models/bundle.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>

#include "as2d/error.h"

namespace as2d {

Bundle Bundle::Open(const std::filesystem::path& folder) {
  Bundle bundle;
  bundle.folder_ = folder;
  std::ifstream file(folder / "bundle.txt");
  std::string line;
  if (!file || !std::getline(file, line)) bundle.Refuse("cannot be read; pull the model again");
  if (line != "as2d-bundle 1") bundle.Refuse("is not a bundle of this version; pull it again");
  while (std::getline(file, line)) {
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    bundle.values_[line.substr(0, colon)].push_back(line.substr(colon + 2));
  }
  for (const std::string& entry : bundle.values_["language"]) {
    const std::size_t space = entry.find(' ');
    if (space == std::string::npos) bundle.Refuse("has a language without a token");
    bundle.languages_.emplace_back(entry.substr(0, space),
                                   bundle.ParseNumber(std::string_view(entry).substr(space + 1), 0,
                                                      std::numeric_limits<int>::max(), "language"));
  }
  return bundle;
}

void Bundle::Refuse(const std::string& what) const {
  throw Error((folder_ / "bundle.txt").string() + ": " + what);
}

int Bundle::ParseNumber(std::string_view text, int low, int high, const std::string& key) const {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < low || value > high) {
    Refuse("'" + key + ": " + std::string(text) + "' is not a number from " + std::to_string(low) +
           " to " + std::to_string(high));
  }
  return value;
}

const std::string& Bundle::Text(const std::string& key) const {
  const auto entry = values_.find(key);
  if (entry == values_.end() || entry->second.size() != 1) Refuse("needs one '" + key + "'");
  return entry->second.front();
}

int Bundle::Number(const std::string& key, int low, int high) const {
  return ParseNumber(Text(key), low, high, key);
}

bool Bundle::Flag(const std::string& key) const {
  const std::string& text = Text(key);
  if (text != "yes" && text != "no") Refuse("'" + key + ": " + text + "' is neither yes nor no");
  return text == "yes";
}

std::filesystem::path Bundle::File(const std::string& key) const {
  const std::string& name = Text(key);
  if (std::filesystem::path(name).filename() != name) {
    Refuse("'" + key + "' must name a file inside the bundle");
  }
  return folder_ / name;
}

std::optional<TokenId> Bundle::Token(const std::string& name) const {
  const std::string key = "token." + name;
  if (!values_.contains(key)) return std::nullopt;
  return Number(key, 0, std::numeric_limits<int>::max());
}

TokenId Bundle::RequiredToken(const std::string& name) const {
  const std::optional<TokenId> token = Token(name);
  if (!token) Refuse("needs 'token." + name + "'");
  return *token;
}

std::vector<TokenId> Bundle::Tokens(const std::string& key) const {
  std::vector<TokenId> tokens;
  if (!values_.contains(key)) return tokens;
  std::string_view rest = Text(key);
  while (!rest.empty()) {
    const std::size_t space = std::min(rest.find(' '), rest.size());
    if (space > 0) {
      tokens.push_back(ParseNumber(rest.substr(0, space), 0, std::numeric_limits<int>::max(), key));
    }
    rest.remove_prefix(std::min(space + 1, rest.size()));
  }
  return tokens;
}

}  // namespace as2d
