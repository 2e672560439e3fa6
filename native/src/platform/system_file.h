// Files of one line, as the kernel has them. Private to the platform's sources.
#pragma once

#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace as2d {

/// First line without blanks at its end; nullopt if there is no such file or it cannot be read.
inline std::optional<std::string> ReadLine(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::string line;
  if (!std::getline(stream, line)) return std::nullopt;
  line.erase(line.find_last_not_of(" \t\r") + 1);
  return line;
}

/// The whole of `text` as a number.
template <typename Number>
std::optional<Number> ParseNumber(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace as2d
