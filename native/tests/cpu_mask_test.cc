#include "as2d/platform/cpu_mask.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace as2d {
namespace {

TEST(CpuMask, ReadsTheKernelsLists) {
  const struct {
    std::string text;
    std::vector<int> cores;
  } cases[] = {
      {"0", {0}},
      {"0-3,5", {0, 1, 2, 3, 5}},
      {"7,0-1\n", {0, 1, 7}},
      {"2-2", {2}},
      {"1,1,0-2", {0, 1, 2}},
      {"1023", {1023}},
      {"", {}},
      {" \n", {}},
  };
  for (const auto& c : cases) {
    const auto mask = CpuMask::Parse(c.text);
    ASSERT_TRUE(mask) << c.text;
    EXPECT_EQ(mask->Cores(), c.cores) << c.text;
    EXPECT_EQ(mask->Count(), static_cast<int>(c.cores.size())) << c.text;
    EXPECT_EQ(mask->Empty(), c.cores.empty()) << c.text;
  }
}

TEST(CpuMask, RefusesWhatIsNoList) {
  for (const char* const text : {"a", "-1", "1-", "-", "--1", "3-1", "1024", "0-1024", "1,", ",1",
                                 "1,,2", "1 2", "0x1", "1-2-3", "99999999999999999999", "+1"}) {
    EXPECT_FALSE(CpuMask::Parse(text)) << text;
  }
}

TEST(CpuMask, WritesTheShortestList) {
  EXPECT_EQ((CpuMask{5, 0, 1, 2, 3}).ToString(), "0-3,5");
  EXPECT_EQ((CpuMask{4, 5, 7}).ToString(), "4-5,7");
  EXPECT_EQ((CpuMask{1022, 1023}).ToString(), "1022-1023");
  EXPECT_EQ(CpuMask().ToString(), "");
}

TEST(CpuMask, IsASet) {
  const CpuMask a{0, 1, 2};
  const CpuMask b{2, 3};
  EXPECT_EQ(a.Intersect(b), (CpuMask{2}));
  EXPECT_EQ(a.Union(b), (CpuMask{0, 1, 2, 3}));
  EXPECT_TRUE(a.Intersect(CpuMask{9}).Empty());
  EXPECT_TRUE(a.Contains(2));
  EXPECT_FALSE(a.Contains(3));
  EXPECT_FALSE(a.Contains(-1));
  EXPECT_FALSE(a.Contains(CpuMask::kMaxCores));
}

TEST(CpuMask, LeavesOutIdsOutOfRange) {
  CpuMask mask{-1, 3, CpuMask::kMaxCores};
  EXPECT_EQ(mask, (CpuMask{3}));
  EXPECT_FALSE(mask.Add(-1));
  EXPECT_FALSE(mask.Add(CpuMask::kMaxCores));
  EXPECT_TRUE(mask.Add(CpuMask::kMaxCores - 1));
}

}  // namespace
}  // namespace as2d
