#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "json.h"

namespace as2d::runner {
namespace {

template <typename T>
std::string TextOf(const T& value) {
  Json json;
  json.Value(value);
  return json.text();
}

TEST(RunnerJson, NestsWithCommas) {
  Json json;
  json.BeginObject().Field("a", 1).Key("b").BeginArray().BeginObject().EndObject().Value(true);
  json.EndArray().Field("c", std::vector<std::vector<int>>{{1, 2}, {}}).EndObject();
  EXPECT_EQ(json.text(), R"({"a": 1, "b": [{}, true], "c": [[1, 2], []]})");
}

TEST(RunnerJson, NumbersKeepAllTheirDigits) {
  EXPECT_EQ(TextOf(0.1), "0.1");
  EXPECT_EQ(TextOf(1.0 / 3), "0.3333333333333333");
  EXPECT_EQ(TextOf(-1e300), "-1e+300");
  EXPECT_EQ(TextOf(std::numeric_limits<double>::infinity()), "null");
  EXPECT_EQ(TextOf(std::numeric_limits<std::int64_t>::min()), "-9223372036854775808");
  EXPECT_EQ(TextOf(std::optional<int>()), "null");
}

TEST(RunnerJson, TextIsAlwaysOneLineOfUtf8) {
  EXPECT_EQ(TextOf("say \"\\\"\n\x01"), R"("say \"\\\"\u000a\u0001")");
  const std::string good = "\u00e9\u20ac\U0001F600";
  EXPECT_EQ(TextOf(good), '"' + good + '"');
  // A byte of Latin-1, a lone half of a pair, a form that is too long, one that is cut off.
  EXPECT_EQ(TextOf("\xe9t\xe9"), R"("\\xe9t\\xe9")");
  EXPECT_EQ(TextOf("\xed\xa0\x80"), R"("\\xed\\xa0\\x80")");
  EXPECT_EQ(TextOf("\xc0\xaf"), R"("\\xc0\\xaf")");
  EXPECT_EQ(TextOf("\xf0\x9f\x98"), R"("\\xf0\\x9f\\x98")");
}

}  // namespace
}  // namespace as2d::runner
