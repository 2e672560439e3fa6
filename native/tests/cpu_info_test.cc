#include "as2d/platform/cpu_info.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "machine_for_test.h"

namespace as2d {
namespace {

using Features = std::vector<std::string>;

CpuInfo Read(const std::string& text) {
  FakeMachine machine;
  machine.Write("proc/cpuinfo", text);
  return CpuInfo::Read(machine.roots().proc);
}

TEST(CpuInfo, OfX86) {
  const CpuInfo info = Read(
      "processor\t: 0\nmodel name\t: Some(R) CPU @ 2.10GHz\n"
      "flags\t\t: fpu sse2 fma avx2 avx512f avx512_vnni\nbugs\t:\n\n"
      "processor\t: 1\nmodel name\t: Some(R) CPU @ 2.10GHz\nflags\t\t: fpu sse2 fma avx2\n");
  EXPECT_EQ(info.CommonFeatures({0}), (Features{"avx2", "fma", "avx512f", "avx512_vnni"}));
  EXPECT_EQ(info.CommonFeatures({0, 1}), (Features{"avx2", "fma"}));
  EXPECT_EQ(info.CommonFeatures({0, 2}), std::nullopt) << "core 2 is not listed";
  EXPECT_EQ(info.CommonFeatures({}), std::nullopt);
  EXPECT_EQ(info.Model({0, 1}), "Some(R) CPU @ 2.10GHz");
  EXPECT_FALSE(info.Lacks({0}, "avx512_vnni", "sse2"));
  EXPECT_TRUE(info.Lacks({0, 1}, "avx512_vnni", "sse2"));
  EXPECT_FALSE(info.Lacks({2}, "avx512_vnni", "sse2")) << "unknown is not known to lack it";
  EXPECT_FALSE(info.Lacks({1}, "asimddp", "asimd")) << "a list of another architecture";
}

TEST(CpuInfo, OfUnlikeArmCores) {
  const CpuInfo info = Read(
      "processor\t: 0\nBogoMIPS\t: 38.40\nFeatures\t: fp asimd crc32 asimddp\n"
      "CPU implementer\t: 0x51\nCPU architecture: 8\nCPU part\t: 0x805\n\n"
      "processor\t: 7\nFeatures\t: fp asimd crc32 asimddp i8mm bf16 sve2 sme\n"
      "CPU implementer\t: 0x51\nCPU part\t: 0x804\n\nHardware\t: Some phone\n");
  EXPECT_EQ(info.CommonFeatures({7}),
            (Features{"asimd", "asimddp", "i8mm", "bf16", "sve2", "sme"}));
  EXPECT_EQ(info.CommonFeatures({0, 7}), (Features{"asimd", "asimddp"}));
  EXPECT_EQ(info.Model({0, 7}), "0x51:0x804, 0x51:0x805");
}

TEST(CpuInfo, OfOldArmKernelsThatSayItOnceForAll) {
  const CpuInfo info = Read(
      "Processor\t: AArch64 Processor rev 4 (aarch64)\nprocessor\t: 0\n\nprocessor\t: 1\n\n"
      "Features\t: fp asimd aes\nCPU implementer\t: 0x41\nCPU part\t: 0xd03\n");
  EXPECT_EQ(info.CommonFeatures({0, 1}), Features{"asimd"});
  EXPECT_EQ(info.Model({0, 1}), "0x41:0xd03");
}

TEST(CpuInfo, OfNothing) {
  EXPECT_EQ(CpuInfo::Read("/nowhere").CommonFeatures({0}), std::nullopt);
  EXPECT_EQ(Read("nonsense\n::\nprocessor : x\nflags : sse2").Model({0}), "");
}

}  // namespace
}  // namespace as2d
