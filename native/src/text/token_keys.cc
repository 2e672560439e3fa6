#include "as2d/text/token_keys.h"

#include <string>
#include <unordered_map>

namespace as2d {
namespace {

bool IsWordByte(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
         (byte >= 'A' && byte <= 'Z') || byte > 0x7f;
}

std::string Normalize(std::string_view bytes) {
  std::string normal;
  for (const char c : bytes) {
    if (!IsWordByte(c)) continue;
    normal += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return normal;
}

}  // namespace

TokenKeys::TokenKeys(const Vocabulary& vocabulary) {
  keys_.reserve(vocabulary.size());
  std::unordered_map<std::string, std::int32_t> first;
  for (std::size_t i = 0; i < vocabulary.size(); ++i) {
    const auto id = static_cast<std::int32_t>(i);
    const std::string_view bytes = vocabulary.Bytes(id);
    if (bytes.empty()) {
      keys_.push_back(id);
      continue;
    }
    const std::string normal = Normalize(bytes);
    keys_.push_back(normal.empty() ? kMark : first.try_emplace(normal, id).first->second);
  }
}

std::int32_t TokenKeys::Key(TokenId token) const {
  const auto index = static_cast<std::size_t>(token);  // huge for a negative one
  return index < keys_.size() ? keys_[index] : token;
}

}  // namespace as2d
