#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace as2d {

/// `text` with every line break, tab or other control character turned into a space and runs of
/// spaces and trailing ones removed: what others report in several lines becomes one.
inline std::string OneLine(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const bool blank = static_cast<unsigned char>(c) <= ' ' || c == '\x7f';
    if (!blank) {
      line += c;
    } else if (!line.empty() && line.back() != ' ') {
      line += ' ';
    }
  }
  if (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

/// Anything that the engine cannot do. The message is one line; it names the file or option, says
/// what is wrong with it and, where there is one, the remedy.
class Error : public std::runtime_error {
 public:
  explicit Error(std::string_view message) : std::runtime_error(OneLine(message)) {}
};

/// A run that was ended through its Canceller. Not an Error: a handler of failures must not take
/// an obeyed request for one.
class Cancelled : public std::runtime_error {
 public:
  explicit Cancelled(std::string_view what) : std::runtime_error(OneLine(what)) {}
};

}  // namespace as2d
