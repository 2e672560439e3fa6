#include "as2d/platform/caches.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "machine_for_test.h"

namespace as2d {
namespace {

class CachesTest : public testing::Test {
 protected:
  void Put(int core, int index, const std::string& level, const std::string& type,
           const std::string& size, const std::string& shared) {
    const std::string folder =
        "cpu/cpu" + std::to_string(core) + "/cache/index" + std::to_string(index) + '/';
    machine_.Write(folder + "level", level);
    machine_.Write(folder + "type", type);
    if (!size.empty()) machine_.Write(folder + "size", size);
    if (!shared.empty()) machine_.Write(folder + "shared_cpu_list", shared);
  }

  FakeMachine machine_;
};

TEST_F(CachesTest, EachOnceTheLowestLevelsFirst) {
  for (const int core : {0, 1}) {
    Put(core, 3, "3", "Unified", "8M", "0-3");
    Put(core, 2, "2", "Unified", "1280K", std::to_string(core));
    Put(core, 1, "1", "Instruction", "32K", std::to_string(core));
    Put(core, 0, "1", "Data", "48K", std::to_string(core));
  }
  const std::vector<Cache> caches = ReadCaches(CpuMask{0, 1}, machine_.roots());
  using Row = std::tuple<int, std::string, std::int64_t, std::string>;
  std::vector<Row> rows;
  for (const Cache& cache : caches) {
    rows.emplace_back(cache.level, cache.kind, cache.bytes, cache.cores.ToString());
  }
  EXPECT_EQ(rows, (std::vector<Row>{{1, "data", 48 << 10, "0"},
                                    {1, "data", 48 << 10, "1"},
                                    {1, "instruction", 32 << 10, "0"},
                                    {1, "instruction", 32 << 10, "1"},
                                    {2, "unified", 1280 << 10, "0"},
                                    {2, "unified", 1280 << 10, "1"},
                                    {3, "unified", 8 << 20, "0-3"}}));
  EXPECT_EQ(ReadCaches(CpuMask{1}, machine_.roots()).size(), 4u);
}

TEST_F(CachesTest, LeavesOutWhatIsUnknown) {
  Put(0, 0, "1", "Data", "", "0");  // as device trees without sizes have it
  Put(0, 1, "x", "Data", "32K", "0");
  Put(0, 2, "2", "Unified", "0K", "0");
  Put(0, 3, "2", "Unified", "large", "0");
  Put(0, 4, "2", "Unified", "9999999999999999G", "0");
  EXPECT_TRUE(ReadCaches(CpuMask{0}, machine_.roots()).empty());
  EXPECT_TRUE(ReadCaches(CpuMask{7}, machine_.roots()).empty());
}

TEST_F(CachesTest, IsTheCoresOwnWithoutAList) {
  Put(0, 0, "1", "Data", "512", "");
  const std::vector<Cache> caches = ReadCaches(CpuMask{0}, machine_.roots());
  ASSERT_EQ(caches.size(), 1u);
  EXPECT_EQ(caches[0].bytes, 512);
  EXPECT_EQ(caches[0].cores, CpuMask{0});
}

}  // namespace
}  // namespace as2d
