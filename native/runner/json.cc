#include "json.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace as2d::runner {
namespace {

/// Bytes of the UTF-8 character that `text` begins with; 0 if it is none.
std::size_t CharacterSize(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const std::size_t size = lead < 0x80   ? 1
                           : lead < 0xC2 ? 0
                           : lead < 0xE0 ? 2
                           : lead < 0xF0 ? 3
                           : lead < 0xF5 ? 4
                                         : 0;
  if (size > text.size()) return 0;
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // Longer forms than need be, halves of pairs, and what lies beyond the last character.
  if (size == 3 && ((lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xED && byte(1) > 0x9F))) return 0;
  if (size == 4 && ((lead == 0xF0 && byte(1) < 0x90) || (lead == 0xF4 && byte(1) > 0x8F))) return 0;
  return size;
}

std::string Escaped(const char* format, char c) {
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), format,
                static_cast<unsigned>(static_cast<unsigned char>(c)));
  return text.data();
}

}  // namespace

Json& Json::Key(std::string_view key) {
  Comma();
  Quote(key);
  text_ += ": ";
  first_ = true;
  return *this;
}

Json& Json::Value(std::string_view text) {
  Comma();
  Quote(text);
  return *this;
}

Json& Json::Value(double number) {
  if (!std::isfinite(number)) return Value(std::nullopt);
  std::array<char, 32> text{};
  // 15 digits are enough for most numbers, 17 for all.
  for (int digits = 15; digits <= 17; ++digits) {
    std::snprintf(text.data(), text.size(), "%.*g", digits, number);
    if (std::strtod(text.data(), nullptr) == number) break;
  }
  return Raw(text.data());
}

Json& Json::Begin(char bracket) {
  Comma();
  text_ += bracket;
  first_ = true;
  return *this;
}

Json& Json::End(char bracket) {
  text_ += bracket;
  first_ = false;
  return *this;
}

Json& Json::Raw(std::string_view text) {
  Comma();
  text_ += text;
  return *this;
}

void Json::Comma() {
  if (!first_) text_ += ", ";
  first_ = false;
}

void Json::Quote(std::string_view text) {
  text_ += '"';
  while (!text.empty()) {
    const char c = text.front();
    const std::size_t size = CharacterSize(text);
    if (c == '"' || c == '\\') {
      text_ += '\\';
      text_ += c;
    } else if (size == 0) {
      text_ += Escaped("\\\\x%02x", c);
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      text_ += Escaped("\\u%04x", c);
    } else {
      text_ += text.substr(0, size);
    }
    text.remove_prefix(size == 0 ? 1 : size);
  }
  text_ += '"';
}

}  // namespace as2d::runner
