#include "as2d/platform/topology.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

namespace as2d {
namespace {

namespace fs = std::filesystem;

// A machine in a folder of its own, removed at the end.
class FakeMachine {
 public:
  FakeMachine() {
    std::string name = (fs::temp_directory_path() / "as2d-topology-XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("no temporary folder");
    root_ = name;
    roots_ = {root_ / "cpu", root_ / "proc", root_ / "cgroup"};
  }
  ~FakeMachine() { fs::remove_all(root_); }
  FakeMachine(const FakeMachine&) = delete;
  FakeMachine& operator=(const FakeMachine&) = delete;

  void Write(const fs::path& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text << '\n';
  }
  void Online(const std::string& list) { Write("cpu/online", list); }
  void Capacities(const std::vector<int>& values) { Figures(values, "cpu_capacity"); }
  void MaxKhz(const std::vector<int>& values) { Figures(values, "cpufreq/cpuinfo_max_freq"); }

  Topology Read(const std::string& allowed) const {
    return ReadTopology(roots_, CpuMask::Parse(allowed).value());
  }

 private:
  void Figures(const std::vector<int>& values, const std::string& name) {
    for (std::size_t core = 0; core < values.size(); ++core) {
      Write("cpu/cpu" + std::to_string(core) + "/" + name, std::to_string(values[core]));
    }
  }

  fs::path root_;
  SystemRoots roots_;
};

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
  EXPECT_EQ(topology.cpu_quota, 0);
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

TEST(Topology, QuotaOfCgroup2IsTheSmallestUpToTheRoot) {
  FakeMachine machine;
  machine.Write("proc/self/cgroup", "0::/system.slice/job/inner");
  machine.Write("cgroup/cpu.max", "max 100000");
  machine.Write("cgroup/system.slice/cpu.max", "400000 100000");
  machine.Write("cgroup/system.slice/job/cpu.max", "150000 100000");
  machine.Write("cgroup/system.slice/job/inner/cpu.max", "max 100000");
  EXPECT_EQ(machine.Read("0").cpu_quota, 1.5);
}

TEST(Topology, QuotaOfCgroup1) {
  FakeMachine machine;
  machine.Write("proc/self/cgroup", "5:memory:/job\n4:cpu,cpuacct:/job");
  machine.Write("cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1");
  machine.Write("cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000");
  machine.Write("cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "50000");
  machine.Write("cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000");
  machine.Write("cgroup/memory/job/cpu.cfs_quota_us", "1");
  EXPECT_EQ(machine.Read("0").cpu_quota, 0.5);
}

TEST(Topology, QuotaOfCgroup1UnderTheControllersOwnName) {
  FakeMachine machine;
  machine.Write("proc/self/cgroup", "4:cpuacct,cpu:/");
  machine.Write("cgroup/cpu/cpu.cfs_quota_us", "200000");
  machine.Write("cgroup/cpu/cpu.cfs_period_us", "100000");
  EXPECT_EQ(machine.Read("0").cpu_quota, 2);
}

TEST(Topology, QuotaInsideAContainerWhosePathIsTheHosts) {
  FakeMachine machine;
  machine.Write("proc/self/cgroup", "4:cpu,cpuacct:/docker/0123abcd");
  machine.Write("cgroup/cpu,cpuacct/cpu.cfs_quota_us", "300000");
  machine.Write("cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000");
  EXPECT_EQ(machine.Read("0").cpu_quota, 3);
}

TEST(Topology, QuotaAboveTheNamespaceRootIsNotGuessed) {
  FakeMachine machine;
  machine.Write("proc/self/cgroup", "0::/../other");
  machine.Write("cgroup/other/cpu.max", "100000 100000");
  EXPECT_EQ(machine.Read("0").cpu_quota, 0);
}

TEST(Topology, NoQuota) {
  FakeMachine machine;
  machine.Write("proc/self/cgroup", "0::/\nbroken line\n1:name=systemd:/x");
  machine.Write("cgroup/cpu.max", "max 100000");
  EXPECT_EQ(machine.Read("0").cpu_quota, 0);
}

TEST(Topology, ThisMachineHasACore) {
  const Topology topology = ReadTopology();
  ASSERT_FALSE(topology.clusters.empty());
  EXPECT_FALSE(topology.Cores().empty());
}

}  // namespace
}  // namespace as2d
