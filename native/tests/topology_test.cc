#include "as2d/platform/topology.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "machine_for_test.h"

namespace as2d {
namespace {

using Groups = std::vector<std::vector<int>>;

Groups CoresOf(const Topology& topology) {
  Groups groups;
  for (const CoreCluster& cluster : topology.clusters) groups.push_back(cluster.cores);
  return groups;
}

TEST(Topology, FourBigFourLittle) {
  FakeMachine machine;
  machine.Online("0-7");
  machine.Capacities({400, 400, 400, 400, 1024, 1024, 1024, 1024});
  machine.MaxKhz({1800000, 1800000, 1800000, 1800000, 2800000, 2800000, 2800000, 2800000});
  const Topology topology = machine.Read("0-7");
  EXPECT_EQ(CoresOf(topology), (Groups{{4, 5, 6, 7}, {0, 1, 2, 3}}));
  EXPECT_EQ(topology.source, ClusterSource::kCapacity);
  EXPECT_EQ(topology.clusters[0].capacity, 1024);
  EXPECT_EQ(topology.clusters[0].max_khz, 2800000);
  EXPECT_EQ(topology.clusters[1].capacity, 400);
  EXPECT_EQ(topology.Cores(), (std::vector<int>{4, 5, 6, 7, 0, 1, 2, 3}));
  EXPECT_EQ(topology.Mask().ToString(), "0-7");
}

TEST(Topology, OnePrimeThreeBigFourLittle) {
  FakeMachine machine;
  machine.Online("0-7");
  machine.Capacities({250, 250, 250, 250, 800, 800, 800, 1024});
  EXPECT_EQ(CoresOf(machine.Read("0-7")), (Groups{{7}, {4, 5, 6}, {0, 1, 2, 3}}));
}

TEST(Topology, TwoBigSixLittle) {
  FakeMachine machine;
  machine.Online("0-7");
  machine.Capacities({430, 430, 430, 430, 430, 430, 1024, 1024});
  EXPECT_EQ(CoresOf(machine.Read("0-7")), (Groups{{6, 7}, {0, 1, 2, 3, 4, 5}}));
}

TEST(Topology, OnePrimeFiveBigTwoLittleInAnyOrderOfIds) {
  FakeMachine machine;
  machine.Online("0-7");
  machine.Capacities({1024, 720, 300, 720, 720, 300, 720, 720});
  EXPECT_EQ(CoresOf(machine.Read("0-7")), (Groups{{0}, {1, 3, 4, 6, 7}, {2, 5}}));
}

TEST(Topology, HybridX86WithoutSmt) {
  FakeMachine machine;
  machine.Online("0-7");
  for (int core = 0; core < 8; ++core) machine.Siblings(core, std::to_string(core));
  machine.MaxKhz({5100000, 4900000, 4900000, 5100000, 3700000, 3700000, 3700000, 3700000});
  const Topology topology = machine.Read("0-7");
  EXPECT_EQ(CoresOf(topology), (Groups{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_EQ(topology.source, ClusterSource::kMaxFrequency);
  EXPECT_EQ(topology.siblings, std::vector<std::vector<int>>{});
  // Newer kernels have capacities there, too.
  machine.Capacities({1024, 1009, 1009, 1024, 690, 690, 690, 690});
  const Topology newer = machine.Read("0-7");
  EXPECT_EQ(CoresOf(newer), CoresOf(topology));
  EXPECT_EQ(newer.source, ClusterSource::kCapacity);
}

TEST(Topology, ThreadsOfOneCoreAreSiblings) {
  FakeMachine machine;
  machine.Online("0-7");
  for (int core = 0; core < 8; ++core) {
    machine.Siblings(core, std::to_string(core % 4) + ',' + std::to_string(core % 4 + 4));
  }
  machine.MaxKhz(std::vector<int>(8, 4700000));
  const Topology topology = machine.Read("0-7");
  EXPECT_EQ(CoresOf(topology), (Groups{{0, 1, 2, 3, 4, 5, 6, 7}}));
  EXPECT_EQ(topology.siblings, (Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  EXPECT_EQ(machine.Read("0,4,5,2").siblings, (Groups{{0, 4}})) << "of the usable ones";
}

TEST(Topology, HybridX86WithSmtOnItsFastCoresOnly) {
  FakeMachine machine;
  machine.Online("0-5");
  machine.Siblings(0, "0-1");
  machine.Siblings(1, "0-1");
  for (int core = 2; core < 6; ++core) machine.Siblings(core, std::to_string(core));
  machine.MaxKhz({4700000, 4700000, 3500000, 3500000, 3500000, 3500000});
  const Topology topology = machine.Read("0-5");
  EXPECT_EQ(CoresOf(topology), (Groups{{0, 1}, {2, 3, 4, 5}}));
  EXPECT_EQ(topology.siblings, (Groups{{0, 1}}));
}

TEST(Topology, SiblingsUnderTheNewNameOrUnknown) {
  FakeMachine machine;
  machine.Online("0-1");
  machine.Write("cpu/cpu0/topology/core_cpus_list", "0-1");
  EXPECT_EQ(machine.Read("0-1").siblings, std::nullopt) << "nothing of core 1";
  machine.Write("cpu/cpu1/topology/core_cpus_list", "0-1");
  EXPECT_EQ(machine.Read("0-1").siblings, (Groups{{0, 1}}));
}

TEST(Topology, FeaturesModelAndGovernorOfEachCluster) {
  FakeMachine machine;
  machine.Online("0-3");
  machine.Capacities({400, 400, 1024, 1024});
  machine.Write("proc/cpuinfo",
                "processor\t: 0\nFeatures\t: fp asimd aes asimddp\nCPU implementer\t: 0x41\n"
                "CPU part\t: 0xd05\n\nprocessor\t: 1\nFeatures\t: fp asimd aes asimddp\n"
                "CPU implementer\t: 0x41\nCPU part\t: 0xd05\n\nprocessor\t: 2\n"
                "Features\t: fp asimd aes asimddp i8mm sme\nCPU implementer\t: 0x41\n"
                "CPU part\t: 0xd82\n\nprocessor\t: 3\nFeatures\t: fp asimd aes asimddp i8mm\n"
                "CPU implementer\t: 0x41\nCPU part\t: 0xd82\n");
  machine.Write("cpu/cpu0/cpufreq/scaling_governor", "schedutil");
  machine.Write("cpu/cpu2/cpufreq/scaling_governor", "walt");
  machine.Write("cpu/cpu3/cpufreq/scaling_governor", "performance");
  const Topology topology = machine.Read("0-3");
  ASSERT_EQ(topology.clusters.size(), 2u);
  const CoreCluster& big = topology.clusters[0];
  const CoreCluster& little = topology.clusters[1];
  EXPECT_EQ(big.features, (std::vector<std::string>{"asimd", "asimddp", "i8mm"}));
  EXPECT_EQ(little.features, (std::vector<std::string>{"asimd", "asimddp"}));
  EXPECT_EQ(big.model, "0x41:0xd82");
  EXPECT_EQ(little.model, "0x41:0xd05");
  EXPECT_EQ(big.governor, "performance, walt");
  EXPECT_EQ(little.governor, "schedutil");
}

TEST(Topology, FallsBackToFrequency) {
  FakeMachine machine;
  machine.Online("0-7");
  machine.MaxKhz({1800000, 1800000, 1800000, 1800000, 2800000, 2800000, 2800000, 2800000});
  const Topology topology = machine.Read("0-7");
  EXPECT_EQ(CoresOf(topology), (Groups{{4, 5, 6, 7}, {0, 1, 2, 3}}));
  EXPECT_EQ(topology.source, ClusterSource::kMaxFrequency);
  EXPECT_EQ(topology.clusters[0].capacity, 0);
}

TEST(Topology, EqualCapacitiesAreNoAnswer) {
  FakeMachine machine;
  machine.Online("0-3");
  machine.Capacities({1024, 1024, 1024, 1024});
  machine.MaxKhz({1400000, 1400000, 2000000, 2000000});
  const Topology topology = machine.Read("0-3");
  EXPECT_EQ(CoresOf(topology), (Groups{{2, 3}, {0, 1}}));
  EXPECT_EQ(topology.source, ClusterSource::kMaxFrequency);
  EXPECT_EQ(topology.clusters[1].capacity, 1024);
}

TEST(Topology, FavouredTurboCoresAreNoCluster) {
  FakeMachine machine;
  machine.Online("0-3");
  machine.MaxKhz({5200000, 5500000, 5200000, 5000000});
  EXPECT_EQ(CoresOf(machine.Read("0-3")), (Groups{{0, 1, 2, 3}}));
}

TEST(Topology, AChainOfSmallStepsIsCutAtTenPercentOfItsFastest) {
  FakeMachine machine;
  machine.Online("0-3");
  machine.Capacities({1000, 950, 901, 900});
  EXPECT_EQ(CoresOf(machine.Read("0-3")), (Groups{{0, 1, 2}, {3}}));
}

TEST(Topology, OneFigureMissingDropsTheSource) {
  FakeMachine machine;
  machine.Online("0-3");
  machine.Capacities({400, 400, 1024});  // Core 3 has none.
  machine.MaxKhz({2000000, 2000000, 2000000, 2000000});
  const Topology topology = machine.Read("0-3");
  EXPECT_EQ(CoresOf(topology), (Groups{{0, 1, 2, 3}}));
  EXPECT_EQ(topology.source, ClusterSource::kMaxFrequency);
}

TEST(Topology, Homogeneous) {
  FakeMachine machine;
  machine.Online("0-3");
  machine.Capacities({1024, 1024, 1024, 1024});
  const Topology topology = machine.Read("0-3");
  EXPECT_EQ(CoresOf(topology), (Groups{{0, 1, 2, 3}}));
  EXPECT_EQ(topology.clusters[0].capacity, 1024);
}

TEST(Topology, OfflineCoresAreDropped) {
  FakeMachine machine;
  machine.Online("0-1,3");
  machine.Capacities({400, 400, 1024, 1024});
  EXPECT_EQ(CoresOf(machine.Read("0-3")), (Groups{{3}, {0, 1}}));
}

TEST(Topology, OfflineCoresAreThoseThatAreThere) {
  FakeMachine machine;
  machine.Online("0-1,3");
  machine.Write("cpu/present", "0-3");
  machine.Write("cpu/possible", "0-127");
  machine.Write("cpu/offline", "2,4-127");
  EXPECT_EQ(machine.Read("0-1").offline, CpuMask{2});
  machine.Online("0-3");
  EXPECT_EQ(machine.Read("0-1").offline, CpuMask());
}

TEST(Topology, OneCore) {
  FakeMachine machine;
  machine.Online("0");
  machine.Capacities({1024});
  EXPECT_EQ(CoresOf(machine.Read("0")), (Groups{{0}}));
}

TEST(Topology, MaskThatLeavesLittleCoresOnly) {
  FakeMachine machine;
  machine.Online("0-7");
  machine.Capacities({400, 400, 400, 400, 1024, 1024, 1024, 1024});
  const Topology topology = machine.Read("0-2");
  EXPECT_EQ(CoresOf(topology), (Groups{{0, 1, 2}}));
  EXPECT_EQ(topology.clusters[0].capacity, 400);
}

TEST(Topology, MissingFoldersLeaveOneUnknownCluster) {
  const FakeMachine machine;
  const Topology topology = machine.Read("0-1,4");
  EXPECT_EQ(CoresOf(topology), (Groups{{0, 1, 4}}));
  EXPECT_EQ(topology.source, ClusterSource::kNone);
  EXPECT_EQ(topology.clusters[0].capacity, 0);
  EXPECT_EQ(topology.clusters[0].max_khz, 0);
  EXPECT_EQ(topology.cpu_quota, std::nullopt);
  EXPECT_EQ(topology.offline, std::nullopt);
  EXPECT_EQ(topology.siblings, std::nullopt);
  EXPECT_EQ(topology.clusters[0].features, std::nullopt);
  EXPECT_EQ(topology.clusters[0].model, "");
  EXPECT_EQ(topology.clusters[0].governor, "");
  EXPECT_TRUE(topology.caches.empty());
  EXPECT_EQ(topology.allowed, (CpuMask{0, 1, 4})) << "told by the kernel, not by a folder";
}

TEST(Topology, UnreadableFiguresAreUnknown) {
  FakeMachine machine;
  machine.Online("nonsense");
  machine.Write("cpu/cpu0/cpu_capacity", "many");
  machine.Write("cpu/cpu1/cpu_capacity", "-5");
  const Topology topology = machine.Read("0-1");
  EXPECT_EQ(CoresOf(topology), (Groups{{0, 1}}));
  EXPECT_EQ(topology.source, ClusterSource::kNone);
}

TEST(Topology, NoUsableCore) {
  FakeMachine machine;
  machine.Online("0-1");
  EXPECT_TRUE(machine.Read("").clusters.empty());
}

TEST(Topology, ThisMachineHasACore) {
  const Topology topology = ReadTopology();
  ASSERT_FALSE(topology.clusters.empty());
  EXPECT_FALSE(topology.Cores().empty());
  if (topology.can_pin) {
    ASSERT_TRUE(topology.allowed);
    EXPECT_EQ(topology.Mask().Intersect(*topology.allowed), topology.Mask());
  }
}

}  // namespace
}  // namespace as2d
