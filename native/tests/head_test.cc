// Draft heads on small random graphs: what they are given of the target's encoding, and what they
// make of it.
#include "as2d/models/head.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "as2d/engine.h"
#include "as2d/error.h"
#include "as2d/models/adapter_head.h"
#include "as2d/models/ctc_head.h"
#include "as2d/models/whisper.h"
#include "bundles_for_test.h"

namespace as2d {
namespace {

using Tokens = std::vector<TokenId>;
using Encoding = std::vector<float>;

constexpr std::size_t kLines = 1500;
constexpr std::size_t kSecond = 16000;

std::shared_ptr<WorkerPool> Pool() { return WorkerPool::Unpinned("test", 1); }

Bundle Open(const std::string& name) { return Bundle::Open(BundlePath(name)); }

TEST(HeardOfTest, IsTheAudioAndASecondOfSilence) {
  const Encoding encoding(kLines * 2);
  for (const auto& [samples, lines] : std::vector<std::pair<std::size_t, std::size_t>>{
           {0, 50},
           {1, 51},
           {320, 51},
           {321, 52},
           {kSecond, 100},
           {29 * kSecond, 1500},
           {30 * kSecond, 1500},
       }) {
    EXPECT_EQ(HeardOf(encoding, 2, samples).size(), 2 * lines) << samples;
  }
  EXPECT_EQ(HeardOf({}, 2, kSecond).size(), 0U);
}

TEST(EncoderInputTest, FillsUpWithZerosWhateverWasThereBefore) {
  EncoderInput input(TestRuntime(), {.name = "lines", .width = 2, .tile = 2, .window = 5});
  EXPECT_EQ(input.window_tiles(), 3U);
  EXPECT_EQ(input.TilesFor(0), 1U);
  EXPECT_EQ(input.TilesFor(2), 1U);
  EXPECT_EQ(input.TilesFor(3), 2U);
  EXPECT_EQ(input.TilesFor(100), 3U);
  EXPECT_EQ(input.EntriesOf(3), 5U) << "the last one is cut";
  input.Write(Encoding(10, 7.0F), 3);
  EXPECT_EQ(input.View(3).shape(), (Shape{1, 5, 2}));
  input.Write(Encoding{1, 2}, 2);
  EXPECT_EQ(input.View(2).shape(), (Shape{1, 4, 2}));
  EXPECT_TRUE(std::ranges::equal(input.View(2).values<float>(), Encoding{1, 2, 0, 0, 0, 0, 0, 0}));
  EXPECT_THROW(input.Write(Encoding(5), 1), Error);
  EXPECT_EQ(EncoderInput(TestRuntime(), {.name = "audio", .width = 0, .tile = 2, .window = 5})
                .View(1)
                .shape(),
            (Shape{1, 2}));
}

std::shared_ptr<AdapterHead> Adapter() {
  const Bundle bundle = Open("adapter");
  return std::make_shared<AdapterHead>(
      std::make_shared<WhisperModel>(TestRuntime(), bundle, Pool()),
      Vocabulary::Load(bundle.File("vocabulary").string()));
}

/// Tokens, and how sure of each the head was.
struct Said {
  Tokens tokens;
  std::vector<float> confidences;

  bool operator==(const Said&) const = default;
};

/// Both kinds of heads, as drafters.
class HeadTest : public testing::TestWithParam<std::string> {
 protected:
  static std::shared_ptr<DraftModel> Load(const std::string& kind) {
    if (kind == "ctc") return std::make_shared<CtcHead>(TestRuntime(), Open(kind), Pool());
    return Adapter();
  }

  static Window WindowOf(std::size_t samples) {
    Window window;
    window.samples.resize(samples);
    window.language = "en";
    return window;
  }

  Encoding Lines(std::size_t count, unsigned seed) const {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    Encoding lines(count * width_);
    for (float& number : lines) number = normal(random);
    return lines;
  }

  static Said Draft(DraftModel& model, const Window& window, std::span<const float> encoding) {
    Said said;
    model.Begin(window, encoding);
    EXPECT_TRUE(model.encoding());
    for (bool more = true; more;) {
      const bool encodes = model.encoding();
      more = model.Next(&said.tokens);
      if (!encodes) said.confidences.push_back(model.confidence());
    }
    EXPECT_FALSE(model.encoding());
    return said;
  }

  const std::size_t width_ =
      static_cast<std::size_t>(Open(GetParam()).Number("encoding_width", 1, 1000));
  const std::shared_ptr<DraftModel> head_ = Load(GetParam());
};

TEST_P(HeadTest, NothingOfAWindowIsLeftInTheNext) {
  const Encoding encodings[] = {Lines(kLines, 1), Lines(kLines, 2)};
  const std::size_t lengths[] = {30 * kSecond, kSecond / 2, 7 * kSecond, 0, 12 * kSecond};
  for (const std::size_t samples : lengths) {
    for (const Encoding& encoding : encodings) {
      const Window window = WindowOf(samples);
      const Said said = Draft(*head_, window, encoding);
      EXPECT_EQ(said, Draft(*Load(GetParam()), window, encoding)) << samples;
      EXPECT_EQ(said, Draft(*head_, window, encoding)) << samples;
    }
  }
  const Window window = WindowOf(7 * kSecond);
  EXPECT_NE(Draft(*head_, window, encodings[0]), Draft(*head_, window, encodings[1]))
      << "or this says nothing";
}

TEST_P(HeadTest, HearsWhatIsHeardOfTheWindowAndNoMore) {
  const Window window = WindowOf(2 * kSecond);  // 150 lines
  Encoding encoding = Lines(kLines, 3);
  const Said said = Draft(*head_, window, encoding);
  const std::span<float> rest = std::span(encoding).subspan(150 * width_);
  std::ranges::fill(rest, 5.0F);
  EXPECT_EQ(Draft(*head_, window, encoding), said);
  EXPECT_EQ(Draft(*head_, window, std::span(encoding).first(150 * width_)), said);
  // What comes to 160 lines, five tiles, is silence without a sound: not what fills other places.
  std::ranges::fill(rest.first(10 * width_), 0.0F);
  EXPECT_EQ(Draft(*head_, WindowOf(window.samples.size() + 10 * 320), encoding), said);
}

TEST_P(HeadTest, ItIsNotToldWithoutAnEncoding) {
  EXPECT_TRUE(head_->needs_encoding());
  EXPECT_NO_THROW(Draft(*head_, WindowOf(kSecond), {})) << "though it could only guess";
}

TEST_P(HeadTest, CancelEndsACall) {
  const Window window = WindowOf(30 * kSecond);
  const Encoding encoding = Lines(kLines, 4);
  head_->Begin(window, encoding);
  head_->Cancel();
  Tokens tokens;
  EXPECT_THROW(head_->Next(&tokens), Cancelled);
  head_->ClearCancel();
  EXPECT_EQ(Draft(*head_, window, encoding), Draft(*Load(GetParam()), window, encoding));
}

INSTANTIATE_TEST_SUITE_P(All, HeadTest, testing::Values("adapter", "ctc"),
                         [](const auto& test) { return test.param; });

class CtcHeadTest : public HeadTest {
 protected:
  /// Long stretches of the same, so that tokens repeat.
  Encoding Stretches() const {
    Encoding encoding = Lines(kLines, 5);
    for (std::size_t line = 0; line < kLines; ++line) {
      if (line % 32 == 0) continue;
      std::copy_n(encoding.begin() + static_cast<std::ptrdiff_t>((line - line % 32) * width_),
                  width_, encoding.begin() + static_cast<std::ptrdiff_t>(line * width_));
    }
    return encoding;
  }
};

TEST_P(CtcHeadTest, SaysWhatIsLeftWithoutRepeatsAndBlanks) {
  const auto encoder = Session::Load(TestRuntime(), Open("ctc").File("encoder"), {});
  const TokenId blank = Open("ctc").Number("vocabulary_size", 2, 1000) - 1;
  const Encoding encoding = Stretches();
  Tensor lines(TestRuntime(), ElementType::kFloat32, {1, 1536, static_cast<std::int64_t>(width_)});
  std::ranges::copy(encoding, lines.values<float>().begin());
  const std::array<Session::Input, 1> inputs = {{{"encoding", &lines}}};
  const auto outputs = encoder->Run(inputs, std::array{"sketch"});
  const auto positions = outputs.front().values<std::int64_t>();
  Tokens expected;
  std::size_t blanks = 0;
  for (std::size_t i = 0; i < positions.size(); ++i) {
    if (positions[i] == blank) ++blanks;
    if (positions[i] == blank || (i > 0 && positions[i] == positions[i - 1])) continue;
    expected.push_back(static_cast<TokenId>(positions[i]));
  }
  EXPECT_GT(blanks, 0U);
  EXPECT_LT(expected.size() + blanks, positions.size()) << "or this says nothing of repeats";
  const Window window = WindowOf(30 * kSecond);
  Tokens tokens;
  head_->Begin(window, encoding);
  EXPECT_FALSE(head_->Next(&tokens)) << "all of it comes of one piece of work";
  EXPECT_EQ(tokens, expected);
}

TEST_P(CtcHeadTest, GoesOnAfterAHistory) {
  const Encoding encoding = Lines(kLines, 6);
  const Window window = WindowOf(10 * kSecond);
  const Tokens text = Draft(*head_, window, encoding).tokens;
  ASSERT_GT(text.size(), 30U);
  const auto after = [&](const Tokens& history) {
    Tokens tokens;
    head_->Follow(history);
    EXPECT_FALSE(head_->Next(&tokens));
    return tokens;
  };
  const auto part = [&](std::ptrdiff_t from, std::ptrdiff_t to) {
    return Tokens(text.begin() + from, text.begin() + to);
  };
  const auto end = static_cast<std::ptrdiff_t>(text.size());
  EXPECT_EQ(after(part(0, 20)), part(20, end));
  EXPECT_EQ(after({}), text) << "also after its end";
  Tokens history = part(0, 20);
  history[5] = 200;
  history.insert(history.begin() + 9, {201, 202});
  EXPECT_EQ(after(history), part(20, end)) << "where the two texts agree again";
  EXPECT_EQ(after(text), Tokens{});
  head_->Begin(window, encoding);
  EXPECT_EQ(after(part(0, 20)), part(20, end)) << "before it has heard anything";
  EXPECT_EQ(Draft(*head_, window, encoding).tokens, text) << "and that is forgotten";
}

INSTANTIATE_TEST_SUITE_P(Ctc, CtcHeadTest, testing::Values("ctc"),
                         [](const auto& test) { return test.param; });

TEST(AdapterHeadTest, ASketchChangesNothingOfWhatItSays) {
  const Bundle bundle = Open("adapter");
  WhisperModel model(TestRuntime(), bundle, Pool());
  ASSERT_TRUE(model.hears_encoding());
  const auto head = Adapter();
  std::size_t sketched = 0;
  for (unsigned seed = 0; seed < 8; ++seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    Encoding encoding(kLines * model.line_width());
    for (float& number : encoding) number = normal(random);
    Window window;
    window.samples.resize((1 + 3 * seed) * kSecond);
    Tokens said;
    head->Begin(window, encoding);
    for (bool more = true; more;) more = head->Next(&said);

    model.EncodeLines(HeardOf(encoding, model.line_width(), window.samples.size()));
    sketched += static_cast<std::size_t>(std::ranges::count_if(
        model.sketch(), [&](auto token) { return token != model.vocabulary_size(); }));
    Tokens text = {bundle.RequiredToken("start"), bundle.RequiredToken("no_timestamps")};
    TokenId next[2];
    for (std::size_t cached = 0; text.size() < said.size() + 3; ++cached) {
      const int at = static_cast<int>(cached);
      const Row row{.token = text[cached], .position = at, .at = at};
      model.Forward({&row, 1}, false, next);
      if (cached > 0) text.push_back(next[0]);
    }
    EXPECT_TRUE(std::equal(said.begin(), said.end(), text.begin() + 2)) << seed;
  }
  EXPECT_GT(sketched, 0U) << "or this says nothing";
}

TEST(AdapterHeadTest, SaysNoMoreThanAnybodyCan) {
  const auto head = Adapter();
  Window window;
  window.samples.resize(2 * kSecond);
  const Encoding encoding(kLines * 32, 0.5F);
  Tokens tokens;
  head->Begin(window, encoding);
  while (head->Next(&tokens)) {
  }
  EXPECT_FALSE(tokens.empty());
  EXPECT_LE(tokens.size(), 12U + 7 * 2);
}

// Bundles.

std::string ProblemOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(HeadBundleTest, IsForOneTarget) {
  const Bundle head = Open("ctc");
  EXPECT_NO_THROW(RequireTarget(head, Open("one"), 32));
  const std::string folder = head.folder().string();
  EXPECT_EQ(ProblemOf([&] { RequireTarget(head, Open("two"), 32); }),
            folder +
                ": was made for the target 'one', not for 'two'; choose that target or another "
                "drafter");
  EXPECT_EQ(ProblemOf([&] { RequireTarget(head, Open("one"), 384); }),
            folder +
                ": takes encodings of width 32, but those of 'one' have 384; pull both models "
                "again");
}

TEST(HeadBundleTest, TheEngineTakesNoOther) {
  for (const char* const name : {"adapter", "ctc"}) {
    Engine engine(TestVariable("AS2D_ORT_LIBRARY"), BundlePath("two"), {});
    const std::string problem = ProblemOf([&] { engine.LoadDrafter(BundlePath(name), {}); });
    EXPECT_NE(problem.find(BundlePath(name).string() + ": was made for"), std::string::npos);
    EXPECT_FALSE(engine.has_drafter());
  }
}

TEST(HeadBundleTest, IsNoTarget) {
  EXPECT_THROW(Engine(TestVariable("AS2D_ORT_LIBRARY"), BundlePath("adapter"), {}), Error);
}

TEST(HeadBundleTest, SaysWhatIsWrongInIt) {
  for (const auto& [line, replacement, problem] : std::vector<std::array<std::string, 3>>{
           {"kind: ", "kind: transducer", "no driver for a head of the kind 'transducer'"},
           {"encoding_width: ", "encoding_width: 0", "'encoding_width: 0' is not a number from"},
           {"encoding_width: ", "encoding_width: 64", "takes encodings of width 64"},
           {"target: ", "", "needs one 'target'"},
           {"frames_per_position: ", "", "needs one 'frames_per_position'"},
       }) {
    for (const char* const name : {"adapter", "ctc"}) {
      const ChangedBundle bundle(name, line, replacement);
      Engine engine(TestVariable("AS2D_ORT_LIBRARY"), BundlePath("one"), {});
      const std::string said = ProblemOf([&] { engine.LoadDrafter(bundle.folder(), {}); });
      EXPECT_NE(said.find(problem), std::string::npos) << said;
      EXPECT_NE(said.find(bundle.folder().string()), std::string::npos) << said;
      EXPECT_EQ(said.find('\n'), std::string::npos) << said;
    }
  }
  // The graph is not what the description says.
  const ChangedBundle bundle("ctc", "encoding_width: ", "encoding_width: 64");
  const auto encoder = Session::Load(TestRuntime(), BundlePath("ctc") / "encoder.onnx", {});
  const Bundle changed = Bundle::Open(bundle.folder());
  EXPECT_NE(ProblemOf([&] { HeadInput(changed, *encoder); }).find("of width 64"),
            std::string::npos);
}

TEST(DraftAloneTest, AHeadHearsThroughItsTarget) {
  const std::filesystem::path library = TestVariable("AS2D_ORT_LIBRARY");
  for (const std::string name : {"adapter", "ctc"}) {
    Window window;
    window.samples = Sound(3 * kSecond, 0.03F);
    window.language = "en";
    WhisperModel target(TestRuntime(), Open("one"), Pool());
    target.Encode(window.samples, 0);
    Tokens tokens;
    std::shared_ptr<DraftModel> head;
    if (name == "ctc") {
      head = std::make_shared<CtcHead>(TestRuntime(), Open(name), Pool());
    } else {
      head = Adapter();
    }
    head->Begin(window, target.encoding());
    while (head->Next(&tokens)) {
    }
    const Vocabulary vocabulary = Vocabulary::Load(Open(name).File("vocabulary").string());
    std::string text;
    for (const TokenId token : tokens) text += vocabulary.Bytes(token);
    const auto said = DraftAlone(library, BundlePath(name), window, BundlePath("one"));
    EXPECT_EQ(said.tokens, tokens);
    EXPECT_EQ(said.text, text);
    EXPECT_NE(ProblemOf([&] {
                DraftAlone(library, BundlePath(name), window);
              }).find("says nothing without its target; pull 'one', too"),
              std::string::npos);
    EXPECT_THROW(DraftAlone(library, BundlePath(name), window, BundlePath("two")), Error);
  }
}

}  // namespace
}  // namespace as2d
