#include "as2d/text/vocabulary.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

#include "as2d/error.h"

namespace as2d {
namespace {

constexpr char kMagic[4] = {'A', '2', 'D', 'V'};
constexpr std::uint32_t kVersion = 1;
constexpr std::uint32_t kRanked = 1;

/// Reads little-endian numbers of a byte string and never beyond its end.
class Reader {
 public:
  Reader(const std::string& path, std::string_view bytes) : path_(path), bytes_(bytes) {}

  std::string_view Take(std::size_t count) {
    if (bytes_.size() < count) throw Error(path_ + ": vocabulary ends too early; pull it again");
    const std::string_view taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }

  std::uint32_t Number(std::size_t width) {
    std::uint32_t value = 0;
    std::size_t shift = 0;
    for (const char byte : Take(width)) {
      value |= static_cast<std::uint32_t>(static_cast<unsigned char>(byte)) << shift;
      shift += 8;
    }
    return value;
  }

  bool done() const { return bytes_.empty(); }

 private:
  const std::string& path_;
  std::string_view bytes_;
};

}  // namespace

Vocabulary Vocabulary::Load(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(path + ": cannot be opened; pull the model again");
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  Reader reader(path, bytes);
  if (reader.Take(sizeof kMagic) != std::string_view(kMagic, sizeof kMagic)) {
    throw Error(path + ": not a vocabulary; pull the model again");
  }
  if (reader.Number(4) != kVersion) {
    throw Error(path + ": vocabulary of another version; pull the model again");
  }
  const std::uint32_t count = reader.Number(4);
  const bool ranked = (reader.Number(4) & kRanked) != 0;
  std::vector<std::string> tokens;  // grows with what is really there, not with what is claimed
  for (std::uint32_t i = 0; i < count; ++i) tokens.emplace_back(reader.Take(reader.Number(2)));
  if (!reader.done()) throw Error(path + ": bytes after the last token; pull the model again");
  return Vocabulary(std::move(tokens), ranked);
}

Vocabulary::Vocabulary(std::vector<std::string> tokens, bool ranked)
    : tokens_(std::move(tokens)), ranked_(ranked) {}

std::string_view Vocabulary::Bytes(TokenId token) const {
  if (token < 0 || static_cast<std::size_t>(token) >= tokens_.size()) return {};
  return tokens_[static_cast<std::size_t>(token)];
}

}  // namespace as2d
