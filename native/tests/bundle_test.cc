#include "as2d/models/bundle.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "as2d/error.h"

namespace as2d {
namespace {

Bundle Read(const std::string& text) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "as2d-bundle-test";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "bundle.txt") << text;
  return Bundle::Open(folder);
}

TEST(BundleTest, ReadsWhatIsThere) {
  const Bundle bundle = Read(
      "as2d-bundle 1\nfamily: whisper\nencoder: encoder.onnx\nlayers: 6\ntoken.end: 50257\n"
      "language: en 50259\nlanguage: zh 50260\nsuppress: 1 2  7\nbegin_suppress: \n");
  EXPECT_EQ(bundle.Text("family"), "whisper");
  EXPECT_EQ(bundle.File("encoder").filename(), "encoder.onnx");
  EXPECT_EQ(bundle.Number("layers", 1, 100), 6);
  EXPECT_EQ(bundle.Token("end"), 50257);
  EXPECT_EQ(bundle.Token("start"), std::nullopt);
  EXPECT_EQ(bundle.Tokens("suppress"), (std::vector<TokenId>{1, 2, 7}));
  EXPECT_TRUE(bundle.Tokens("begin_suppress").empty());
  EXPECT_TRUE(bundle.Tokens("nothing").empty());
  ASSERT_EQ(bundle.languages().size(), 2U);
  EXPECT_EQ(bundle.languages()[1], (std::pair<std::string, TokenId>{"zh", 50260}));
}

TEST(BundleTest, RefusesWhatItCannotUse) {
  EXPECT_THROW(Bundle::Open("/nonexistent"), Error);
  EXPECT_THROW(Read(""), Error);
  EXPECT_THROW(Read("as2d-bundle 2\n"), Error);
  EXPECT_THROW(Read("<!DOCTYPE html>\n"), Error);
  EXPECT_THROW(Read("as2d-bundle 1\nlanguage: en\n"), Error);
  EXPECT_THROW(Read("as2d-bundle 1\nlanguage: en x\n"), Error);
  const Bundle bundle = Read(
      "as2d-bundle 1\nlayers: 6x\ncontext: 99999999999\nencoder: ../other\ndecoder: /etc/passwd\n"
      "width: 1\nwidth: 2\nsuppress: 1 -2\n");
  EXPECT_THROW(bundle.Number("layers", 1, 100), Error);
  EXPECT_THROW(bundle.Number("context", 1, 100), Error);
  EXPECT_THROW(bundle.Number("width", 1, 100), Error) << "twice";
  EXPECT_THROW(bundle.Text("nothing"), Error);
  EXPECT_THROW(bundle.File("encoder"), Error);
  EXPECT_THROW(bundle.File("decoder"), Error);
  EXPECT_THROW(bundle.Tokens("suppress"), Error);
  EXPECT_THROW(bundle.RequiredToken("end"), Error);
}

}  // namespace
}  // namespace as2d
