#include "as2d/decode/draft_gate.h"

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace as2d {
namespace {

/// A window of the usual kind, which took so many times what the target alone should take.
LaneSpan Took(double multiple) {
  return {.seconds = multiple,
          .encode_seconds = 0.3 * multiple,
          .audio = 30,
          .tokens = 100,
          .predicted = 1};
}

/// The state of the gate after each of so many windows: "+" open, "-" shut.
std::string Course(DraftGate& gate, int windows, double drafted, double alone) {
  std::string course;
  for (int i = 0; i < windows; ++i) {
    gate.WindowFinished(Took(gate.open() ? drafted : alone));
    course += gate.open() ? '+' : '-';
  }
  return course;
}

TEST(DraftGateTest, StaysOpenWhileDraftingPays) {
  DraftGate gate(true);
  EXPECT_EQ(Course(gate, 40, 0.6, 1), std::string(40, '+'));
}

TEST(DraftGateTest, DropsWhatDoesNotPayAndProbesEverMoreRarely) {
  DraftGate gate(true);
  const std::string expected = "+----++--------++----------------++";
  // A probe is open for two windows; the one that shuts the gate is shut already when it is over.
  EXPECT_EQ(Course(gate, static_cast<int>(expected.size()), 1.3, 1), expected);
}

TEST(DraftGateTest, ADifferenceThatMayBeNoiseChangesNothing) {
  DraftGate gate(true);
  EXPECT_EQ(Course(gate, 7, 1.02, 1), std::string(7, '+'));
}

TEST(DraftGateTest, OneSlowWindowDecidesNothing) {
  DraftGate gate(true);
  gate.WindowFinished(Took(3));
  EXPECT_TRUE(gate.open());
  DraftGate later(true);
  Course(later, 6, 0.5, 1);
  later.WindowFinished(Took(1.2));
  EXPECT_TRUE(later.open());
}

TEST(DraftGateTest, AProbeThatPaysKeepsItOpen) {
  DraftGate gate(true);
  Course(gate, 2, 1.5, 1);
  EXPECT_EQ(Course(gate, 4, 0, 1), "---+");
  EXPECT_EQ(Course(gate, 20, 0.5, 1), std::string(20, '+'));
  // And then it begins anew with few windows before a probe.
  EXPECT_EQ(Course(gate, 5, 4, 1), "----+");
}

TEST(DraftGateTest, AMachineThatBecameSlowIsNotTheDraftsFault) {
  DraftGate gate(true);
  EXPECT_EQ(Course(gate, 2, 1.5, 3), "+-");
  EXPECT_EQ(Course(gate, 10, 1.5, 3), "-+++++++++");
}

TEST(DraftGateTest, ASmallGainIsComparedWithTheTargetAlone) {
  // The costs are wrong: alone it takes half of what they say.
  DraftGate gate(true);
  EXPECT_EQ(Course(gate, 8, 0.9, 0.5), "+++++++-");
  EXPECT_EQ(Course(gate, 4, 0.9, 0.5), "----") << "dropped after the comparison";
  // The costs are right.
  DraftGate right(true);
  EXPECT_EQ(Course(right, 8, 0.9, 1), "+++++++-");
  EXPECT_EQ(Course(right, 17, 0.9, 1), "++++++++++++++++-") << "and then after sixteen";
}

TEST(DraftGateTest, WithoutCostsAWindowAloneIsTheMeasure) {
  for (const bool pays : {true, false}) {
    DraftGate gate(false);
    EXPECT_EQ(Course(gate, 5, pays ? 0.5 : 2, 1), "++++-");
    EXPECT_EQ(Course(gate, 2, pays ? 0.5 : 2, 1), pays ? "++" : "--");
  }
}

TEST(DraftGateTest, WithoutCostsFewWindowsAreAllDrafted) {
  DraftGate gate(false);
  EXPECT_EQ(Course(gate, 4, 5, 1), "++++");
}

TEST(DraftGateTest, WithoutCostsLongAndShortWindowsAreComparable) {
  DraftGate gate(false);
  // 1 s for 30 s of audio and 10 ms a token; drafts make the tokens twice as fast.
  const auto window = [&](double audio, double tokens) {
    const double encode = audio / 30;
    const double decode = tokens * (gate.open() ? 0.005 : 0.01);
    gate.WindowFinished(LaneSpan{
        .seconds = encode + decode, .encode_seconds = encode, .audio = audio, .tokens = tokens});
  };
  for (int i = 0; i < 5; ++i) window(30, 150);
  ASSERT_FALSE(gate.open());
  window(10, 5);  // short, and little is said
  EXPECT_TRUE(gate.open());
  for (int i = 0; i < 7; ++i) window(i % 2 == 0 ? 30 : 5, i % 2 == 0 ? 200 : 2);
  EXPECT_TRUE(gate.open());
}

TEST(DraftGateTest, WindowsOfBothKindsAtOnceSayNothing) {
  DraftGate gate(true);
  for (int i = 0; i < 10; ++i) gate.WindowFinished(std::nullopt);
  gate.WindowFinished(LaneSpan{});  // nor does nothing
  gate.WindowFinished(Took(2));
  EXPECT_TRUE(gate.open());
  gate.WindowFinished(Took(2));
  EXPECT_FALSE(gate.open());
}

TEST(DraftGateTest, SaysWhyInFigures) {
  DraftGate gate(true);
  std::vector<std::string> said;
  for (int i = 0; i < 6; ++i) {
    if (auto why = gate.WindowFinished(Took(gate.open() ? 1.5 : 1))) said.push_back(*why);
  }
  ASSERT_EQ(said.size(), 2U);
  EXPECT_EQ(said[0],
            "drafting does not pay: 1.50 of the target's own time with drafts, 1.00 without");
  EXPECT_EQ(said[1], "drafting again, to see whether it pays after 4 windows without");
}

}  // namespace
}  // namespace as2d
