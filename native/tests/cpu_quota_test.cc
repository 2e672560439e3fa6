#include "as2d/platform/cpu_quota.h"

#include <gtest/gtest.h>

#include <optional>

#include "machine_for_test.h"

namespace as2d {
namespace {

TEST(CpuQuota, OfCgroup2IsTheSmallestUpToTheRoot) {
  FakeMachine machine;
  machine.Write("proc/self/cgroup", "0::/system.slice/job/inner");
  machine.Write("cgroup/cpu.max", "max 100000");
  machine.Write("cgroup/system.slice/cpu.max", "400000 100000");
  machine.Write("cgroup/system.slice/job/cpu.max", "150000 100000");
  machine.Write("cgroup/system.slice/job/inner/cpu.max", "max 100000");
  EXPECT_EQ(ReadCpuQuota(machine.roots()), 1.5);
}

TEST(CpuQuota, OfCgroup1) {
  FakeMachine machine;
  machine.Write("proc/self/cgroup", "5:memory:/job\n4:cpu,cpuacct:/job");
  machine.Write("cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1");
  machine.Write("cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000");
  machine.Write("cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "50000");
  machine.Write("cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000");
  machine.Write("cgroup/memory/job/cpu.cfs_quota_us", "1");
  EXPECT_EQ(ReadCpuQuota(machine.roots()), 0.5);
}

TEST(CpuQuota, OfCgroup1UnderTheControllersOwnName) {
  FakeMachine machine;
  machine.Write("proc/self/cgroup", "4:cpuacct,cpu:/");
  machine.Write("cgroup/cpu/cpu.cfs_quota_us", "200000");
  machine.Write("cgroup/cpu/cpu.cfs_period_us", "100000");
  EXPECT_EQ(ReadCpuQuota(machine.roots()), 2);
}

TEST(CpuQuota, InsideAContainerWhosePathIsTheHosts) {
  FakeMachine machine;
  machine.Write("proc/self/cgroup", "4:cpu,cpuacct:/docker/0123abcd");
  machine.Write("cgroup/cpu,cpuacct/cpu.cfs_quota_us", "300000");
  machine.Write("cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000");
  EXPECT_EQ(ReadCpuQuota(machine.roots()), 3);
}

TEST(CpuQuota, AboveTheNamespaceRootIsNotGuessed) {
  FakeMachine machine;
  machine.Write("proc/self/cgroup", "0::/../other");
  machine.Write("cgroup/other/cpu.max", "100000 100000");
  EXPECT_EQ(ReadCpuQuota(machine.roots()), 0);
}

TEST(CpuQuota, NoneIsNoLimit) {
  FakeMachine machine;
  machine.Write("proc/self/cgroup", "0::/\nbroken line\n1:name=systemd:/x");
  machine.Write("cgroup/cpu.max", "max 100000");
  EXPECT_EQ(ReadCpuQuota(machine.roots()), 0);
}

TEST(CpuQuota, UnknownWithoutGroups) {
  const FakeMachine machine;
  EXPECT_EQ(ReadCpuQuota(machine.roots()), std::nullopt);
}

TEST(CpuQuota, TheTightestOfBothVersionsWins) {
  FakeMachine machine;
  machine.Write("proc/self/cgroup", "2:cpu:/outer/inner\n0::/scope");
  machine.Write("cgroup/cpu/outer/cpu.cfs_quota_us", "250000");
  machine.Write("cgroup/cpu/outer/cpu.cfs_period_us", "100000");
  machine.Write("cgroup/cpu/outer/inner/cpu.cfs_quota_us", "75000");
  machine.Write("cgroup/cpu/outer/inner/cpu.cfs_period_us", "25000");
  machine.Write("cgroup/unified/scope/cpu.max", "300000 100000");
  EXPECT_EQ(ReadCpuQuota(machine.roots()), 2.5) << "of the outer group of version 1";
  machine.Write("cgroup/unified/scope/cpu.max", "50000 100000");
  EXPECT_EQ(ReadCpuQuota(machine.roots()), 0.5);
}

TEST(CpuQuota, IgnoresWhatIsNoQuota) {
  FakeMachine machine;
  machine.Write("proc/self/cgroup", "0::/a/b/c/d");
  machine.Write("cgroup/cpu.max", "");
  machine.Write("cgroup/a/cpu.max", "100000");
  machine.Write("cgroup/a/b/cpu.max", "many 100000");
  machine.Write("cgroup/a/b/c/cpu.max", "100000 0");
  EXPECT_EQ(ReadCpuQuota(machine.roots()), 0);
  machine.Write("cgroup/a/b/c/d/cpu.max", "120000 100000");
  EXPECT_EQ(ReadCpuQuota(machine.roots()), 1.2);
}

}  // namespace
}  // namespace as2d
