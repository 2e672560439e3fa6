#include "as2d/text/retokenizer.h"

#include <algorithm>
#include <array>
#include <limits>

namespace as2d {
namespace {

enum class Kind { kSpace, kLetter, kDigit, kMark };

Kind KindOf(char c) {
  const auto byte = static_cast<unsigned char>(c);
  if (byte == ' ' || (byte >= '\t' && byte <= '\r')) return Kind::kSpace;
  if ((byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte > 0x7f) {
    return Kind::kLetter;
  }
  if (byte >= '0' && byte <= '9') return Kind::kDigit;
  return Kind::kMark;
}

constexpr std::array<std::string_view, 7> kContractions = {"'s", "'t",  "'re", "'ve",
                                                           "'m", "'ll", "'d"};

}  // namespace

std::size_t FirstWord(std::string_view text, bool final) {
  if (text.empty()) return 0;
  if (text.front() == '\'') {
    for (const std::string_view contraction : kContractions) {
      if (text.starts_with(contraction)) return contraction.size();
    }
    // "'r" may still become "'re".
    const bool open = std::any_of(kContractions.begin(), kContractions.end(),
                                  [&](std::string_view c) { return c.starts_with(text); });
    if (open && !final) return 0;
  }
  std::size_t begin = 0;
  if (KindOf(text[0]) == Kind::kSpace) {
    std::size_t spaces = 1;
    while (spaces < text.size() && KindOf(text[spaces]) == Kind::kSpace) ++spaces;
    if (spaces == text.size()) return final ? spaces : 0;
    // The last of several spaces belongs to the word that follows, if it is a plain one.
    if (spaces > 1) return spaces - 1;
    if (text[0] != ' ') return 1;
    begin = 1;
  }
  const Kind kind = KindOf(text[begin]);
  std::size_t end = begin + 1;
  while (end < text.size() && KindOf(text[end]) == kind) ++end;
  return end == text.size() && !final ? 0 : end;
}

WordTokenizer::WordTokenizer(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {
  ids_.reserve(vocabulary.size());
  for (std::size_t i = 0; i < vocabulary.size(); ++i) {
    const std::string_view bytes = vocabulary.Bytes(static_cast<TokenId>(i));
    if (bytes.empty()) continue;
    ids_.try_emplace(bytes, static_cast<TokenId>(i));  // the lowest id wins: it is the real one
    longest_ = std::max(longest_, bytes.size());
  }
}

bool WordTokenizer::Append(std::string_view word, std::vector<TokenId>* tokens) const {
  const std::size_t before = tokens->size();
  const bool spelled =
      vocabulary_.ranked() ? AppendByRank(word, tokens) : AppendByLongestMatch(word, tokens);
  if (!spelled) tokens->resize(before);
  return spelled;
}

bool WordTokenizer::AppendByRank(std::string_view word, std::vector<TokenId>* tokens) const {
  // Words are short, so a scan for the lowest rank per merge is as good as a heap. A drafter that
  // says thousands of letters without a space must not cost quadratic time, though.
  constexpr std::size_t kLongestWord = 256;
  if (const auto whole = ids_.find(word); whole != ids_.end()) {
    tokens->push_back(whole->second);
    return true;
  }
  if (word.size() > kLongestWord) return AppendByLongestMatch(word, tokens);
  std::vector<std::string_view> parts;
  parts.reserve(word.size());
  for (std::size_t i = 0; i < word.size(); ++i) parts.push_back(word.substr(i, 1));
  while (parts.size() > 1) {
    TokenId lowest = std::numeric_limits<TokenId>::max();
    std::size_t at = 0;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      const std::string_view pair(parts[i].data(), parts[i].size() + parts[i + 1].size());
      const auto found = ids_.find(pair);
      if (found != ids_.end() && found->second < lowest) {
        lowest = found->second;
        at = i;
      }
    }
    if (lowest == std::numeric_limits<TokenId>::max()) break;
    parts[at] = std::string_view(parts[at].data(), parts[at].size() + parts[at + 1].size());
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
  for (const std::string_view part : parts) {
    const auto found = ids_.find(part);
    if (found == ids_.end()) return false;
    tokens->push_back(found->second);
  }
  return true;
}

bool WordTokenizer::AppendByLongestMatch(std::string_view word,
                                         std::vector<TokenId>* tokens) const {
  while (!word.empty()) {
    std::size_t length = std::min(longest_, word.size());
    auto found = ids_.find(word.substr(0, length));
    while (found == ids_.end() && length > 1) found = ids_.find(word.substr(0, --length));
    if (found == ids_.end()) return false;
    tokens->push_back(found->second);
    word.remove_prefix(length);
  }
  return true;
}

Retokenizer::Retokenizer(const Vocabulary& source, const WordTokenizer& target)
    : source_(source), target_(target) {}

void Retokenizer::Reset() { pending_.clear(); }

void Retokenizer::Push(TokenId source_token, std::vector<TokenId>* target_tokens) {
  pending_ += source_.Bytes(source_token);
  Drain(false, target_tokens);
}

void Retokenizer::Finish(std::vector<TokenId>* target_tokens) { Drain(true, target_tokens); }

void Retokenizer::Drain(bool final, std::vector<TokenId>* target_tokens) {
  std::string_view text = pending_;
  while (const std::size_t length = FirstWord(text, final)) {
    // A word that the target cannot spell is left out: the aligner copes with a missing word.
    target_.Append(text.substr(0, length), target_tokens);
    text.remove_prefix(length);
  }
  pending_.erase(0, pending_.size() - text.size());
}

}  // namespace as2d
