#include "as2d/text/vocabulary.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "as2d/error.h"
#include "as2d/text/token_keys.h"

namespace as2d {
namespace {

using namespace std::string_literals;

std::string Write(const std::string& name, const std::string& bytes) {
  const std::string path = (std::filesystem::path(testing::TempDir()) / name).string();
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

// "A2DV", version 1, three tokens, ranked: "ab", "", "\xff".
const std::string kGood = "A2DV\1\0\0\0\3\0\0\0\1\0\0\0\2\0ab\0\0\1\0\xff"s;

TEST(VocabularyTest, ReadsTokens) {
  const Vocabulary vocabulary = Vocabulary::Load(Write("good.bin", kGood));
  EXPECT_EQ(vocabulary.size(), 3U);
  EXPECT_TRUE(vocabulary.ranked());
  EXPECT_EQ(vocabulary.Bytes(0), "ab");
  EXPECT_EQ(vocabulary.Bytes(1), "");
  EXPECT_EQ(vocabulary.Bytes(2), "\xff");
  EXPECT_EQ(vocabulary.Bytes(3), "") << "ids outside stand for nothing";
  EXPECT_EQ(vocabulary.Bytes(-1), "");
}

TEST(VocabularyTest, RefusesWhatIsMalformed) {
  const auto refused = [](const std::string& bytes) {
    const std::string path = Write("bad.bin", bytes);
    try {
      Vocabulary::Load(path);
    } catch (const Error& error) {
      return std::string(error.what()).find(path) != std::string::npos;
    }
    return false;
  };
  for (std::size_t length = 0; length < kGood.size(); ++length) {
    EXPECT_TRUE(refused(kGood.substr(0, length))) << length << " bytes of it";
  }
  EXPECT_TRUE(refused(kGood + "x"));
  EXPECT_TRUE(refused("<!DOCTYPE html>"s + std::string(100, ' ')));
  std::string claims = kGood;
  claims.replace(8, 4, "\xff\xff\xff\xff");
  EXPECT_TRUE(refused(claims)) << "a count of four thousand million costs nothing";
  EXPECT_THROW(Vocabulary::Load("/nonexistent/vocabulary.bin"), Error);
}

TEST(TokenKeysTest, SharesKeysBetweenFormsOfAWord) {
  const Vocabulary vocabulary({"the", " The", ".", " ,", "them", "", "3", " 3."}, false);
  const TokenKeys keys(vocabulary);
  EXPECT_EQ(keys.Key(0), keys.Key(1));
  EXPECT_NE(keys.Key(0), keys.Key(4));
  EXPECT_EQ(keys.Key(6), keys.Key(7));
  EXPECT_EQ(keys.Key(2), keys.Key(3));
  EXPECT_TRUE(keys.IsMark(2));
  EXPECT_FALSE(keys.IsMark(0));
  EXPECT_FALSE(keys.IsMark(5)) << "a control token is not punctuation";
  EXPECT_FALSE(keys.IsMark(1000));
  EXPECT_FALSE(keys.IsMark(-1));
  EXPECT_NE(keys.Key(1000), keys.Key(1001));
}

}  // namespace
}  // namespace as2d
