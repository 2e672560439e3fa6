#include "as2d/text/retokenizer.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace as2d {
namespace {

/// All 256 bytes, then merges in rank order.
Vocabulary RankedVocabulary() {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  for (const char* merge : {"th", " th", "he", " the", "in", "ing", " w", "or", " wor", "ld",
                            " world", "'t", "on", " d", " don", "re", "'re"}) {
    tokens.emplace_back(merge);
  }
  return Vocabulary(std::move(tokens), true);
}

std::string Text(const Vocabulary& vocabulary, const std::vector<TokenId>& tokens) {
  std::string text;
  for (const TokenId token : tokens) text += vocabulary.Bytes(token);
  return text;
}

std::vector<std::string> Words(std::string_view text) {
  std::vector<std::string> words;
  while (const std::size_t length = FirstWord(text, true)) {
    words.emplace_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return words;
}

TEST(FirstWordTest, SplitsAsThePreTokenizerDoes) {
  using Strings = std::vector<std::string>;
  EXPECT_EQ(Words(" Hello world"), (Strings{" Hello", " world"}));
  EXPECT_EQ(Words("don't"), (Strings{"don", "'t"}));
  EXPECT_EQ(Words("we're, you'll"), (Strings{"we", "'re", ",", " you", "'ll"}));
  EXPECT_EQ(Words(" 3rd (of 12)."), (Strings{" 3", "rd", " (", "of", " 12", ")."}));
  EXPECT_EQ(Words("a   b"), (Strings{"a", "  ", " b"}));
  EXPECT_EQ(Words("a\nb "), (Strings{"a", "\n", "b", " "}));
  EXPECT_EQ(Words(" caf\xc3\xa9!"), (Strings{" caf\xc3\xa9", "!"}));
  EXPECT_EQ(Words("'"), (Strings{"'"}));
}

TEST(FirstWordTest, WaitsWhileMoreTextCouldLengthenTheWord) {
  EXPECT_EQ(FirstWord("", false), 0U);
  EXPECT_EQ(FirstWord(" Hel", false), 0U);
  EXPECT_EQ(FirstWord(" Hel", true), 4U);
  EXPECT_EQ(FirstWord(" Hello ", false), 6U);
  EXPECT_EQ(FirstWord("'r", false), 0U);
  EXPECT_EQ(FirstWord("'re", false), 3U);
  EXPECT_EQ(FirstWord("  ", false), 0U);
}

TEST(WordTokenizerTest, MergesTheLowestRankFirst) {
  const Vocabulary vocabulary = RankedVocabulary();
  const WordTokenizer tokenizer(vocabulary);
  std::vector<TokenId> tokens;
  ASSERT_TRUE(tokenizer.Append(" thing", &tokens));
  // "th" comes before " th", so " " + "th" is merged next, and "in" before "ing".
  EXPECT_EQ(tokens, (std::vector<TokenId>{257, 261}));
  tokens.clear();
  ASSERT_TRUE(tokenizer.Append("hehe", &tokens));
  EXPECT_EQ(tokens, (std::vector<TokenId>{258, 258}));
}

TEST(WordTokenizerTest, TakesTheLongestMatchWithoutRanks) {
  const Vocabulary vocabulary({"a", "b", "ab", "abc", ""}, false);
  const WordTokenizer tokenizer(vocabulary);
  std::vector<TokenId> tokens;
  ASSERT_TRUE(tokenizer.Append("ababc", &tokens));
  EXPECT_EQ(tokens, (std::vector<TokenId>{2, 3}));
  EXPECT_FALSE(tokenizer.Append("abz", &tokens)) << "z cannot be spelled";
  EXPECT_EQ(tokens, (std::vector<TokenId>{2, 3})) << "nothing of it is kept";
}

TEST(RetokenizerTest, PublishesWordsWhenTheyAreComplete) {
  const Vocabulary target = RankedVocabulary();
  const Vocabulary source({"", " th", "e", " wor", "ld", "."}, false);
  const WordTokenizer words(target);
  Retokenizer retokenizer(source, words);
  std::vector<TokenId> out;
  retokenizer.Push(1, &out);
  retokenizer.Push(2, &out);
  EXPECT_TRUE(out.empty()) << "\" the\" may still become \" then\"";
  retokenizer.Push(3, &out);
  EXPECT_EQ(Text(target, out), " the");
  EXPECT_EQ(out.size(), 1U);
  retokenizer.Push(0, &out);   // a control token says nothing
  retokenizer.Push(99, &out);  // and neither does one that does not exist
  retokenizer.Push(4, &out);
  retokenizer.Push(5, &out);
  EXPECT_EQ(Text(target, out), " the world");
  retokenizer.Finish(&out);
  EXPECT_EQ(Text(target, out), " the world.");
  out.clear();
  retokenizer.Push(1, &out);
  retokenizer.Reset();
  retokenizer.Push(5, &out);
  retokenizer.Finish(&out);
  EXPECT_EQ(Text(target, out), ".") << "a new window starts empty";
}

TEST(RetokenizerTest, KeepsEveryByteWhateverTheCuts) {
  std::mt19937 random(7);
  const Vocabulary target = RankedVocabulary();
  const WordTokenizer words(target);
  const std::string alphabet = "the world's\n 12 .,'\xc3\xa9";
  for (int round = 0; round < 300; ++round) {
    std::string text;
    std::vector<std::string> pieces = {""};
    std::vector<TokenId> draft;
    while (text.size() < 40) {
      std::string piece;
      for (unsigned n = 1 + random() % 4; n > 0; --n) piece += alphabet[random() % alphabet.size()];
      text += piece;
      draft.push_back(static_cast<TokenId>(pieces.size()));
      pieces.push_back(piece);
    }
    const Vocabulary source(pieces, false);
    Retokenizer retokenizer(source, words);
    std::vector<TokenId> out;
    for (const TokenId token : draft) {
      retokenizer.Push(token, &out);
      EXPECT_TRUE(text.starts_with(Text(target, out)));
    }
    retokenizer.Finish(&out);
    EXPECT_EQ(Text(target, out), text);
  }
}

}  // namespace
}  // namespace as2d
