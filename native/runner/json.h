#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace as2d::runner {

/// Builds one line of JSON, piece by piece. Whoever uses it sees to it that what is begun is ended
/// and that keys stand before values.
class Json {
 public:
  Json& BeginObject() { return Begin('{'); }
  Json& EndObject() { return End('}'); }
  Json& BeginArray() { return Begin('['); }
  Json& EndArray() { return End(']'); }

  Json& Key(std::string_view key);

  /// Bytes that are no UTF-8 become "\xNN", as text.
  Json& Value(std::string_view text);
  Json& Value(const char* text) { return Value(std::string_view(text)); }
  Json& Value(const std::string& text) { return Value(std::string_view(text)); }
  /// With all its digits; what is no number becomes null.
  Json& Value(double number);
  Json& Value(bool truth) { return Raw(truth ? "true" : "false"); }
  template <std::integral Number>
  Json& Value(Number number) {
    return Raw(std::to_string(number));
  }
  Json& Value(std::nullopt_t) { return Raw("null"); }
  template <typename T>
  Json& Value(const std::optional<T>& value) {
    return value ? Value(*value) : Value(std::nullopt);
  }
  template <typename T>
  Json& Value(const std::vector<T>& values) {
    BeginArray();
    for (const T& value : values) Value(value);
    return EndArray();
  }

  template <typename T>
  Json& Field(std::string_view key, const T& value) {
    return Key(key).Value(value);
  }

  const std::string& text() const { return text_; }

 private:
  Json& Begin(char bracket);
  Json& End(char bracket);
  Json& Raw(std::string_view text);
  void Comma();
  void Quote(std::string_view text);

  std::string text_;
  bool first_ = true;  // nothing stands yet in what was begun last
};

}  // namespace as2d::runner
