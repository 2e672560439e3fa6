#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "as2d/platform/cpu_mask.h"

namespace as2d {

/// Where the kernel's facts are read; tests point them at folders of their own.
struct SystemRoots {
  std::filesystem::path sysfs = "/sys/devices/system/cpu";
  std::filesystem::path proc = "/proc";
  std::filesystem::path cgroup = "/sys/fs/cgroup";
};

/// Cores of about the same speed.
struct CoreCluster {
  std::vector<int> cores;  ///< Kernel ids, ascending; never empty.
  int capacity = 0;        ///< Largest cpu_capacity of the cores, 1..1024; 0 if unknown.
  int max_khz = 0;         ///< Largest cpuinfo_max_freq of the cores in kHz; 0 if unknown.
};

/// What told the clusters apart.
enum class ClusterSource {
  kNone,      ///< Nothing to go by: one cluster.
  kCapacity,  ///< cpu_capacity, the scheduler's own figure.
  kMaxFrequency,
};

struct Topology {
  /// Usable cores (online and allowed), the fastest cluster first. Empty only if no core is usable.
  std::vector<CoreCluster> clusters;
  ClusterSource source = ClusterSource::kNone;
  /// CPU time that the cgroup grants per second of wall time, in cores; 0 if there is no limit.
  double cpu_quota = 0;
  /// False: the platform cannot pin threads, and core ids are no more than a count.
  bool can_pin = true;

  /// All usable cores, fastest cluster first.
  std::vector<int> Cores() const;
  /// The usable cores as a set.
  CpuMask Mask() const;
};

/// The machine as this process may use it. `allowed` stands in for the calling thread's own mask.
/// A file that is missing or unreadable leaves its field at "unknown"; nothing is thrown.
///
/// Cores are told apart by cpu_capacity, else by cpufreq/cpuinfo_max_freq, else not at all; a
/// source counts only if every usable core has a figure. Equal capacities do not end the search:
/// kernels whose device tree has no capacities report 1024 for each core of a big.LITTLE chip.
/// Cores within 10 % of a cluster's fastest belong to it, since x86 gives its favoured cores a
/// slightly higher turbo frequency and nothing else.
Topology ReadTopology(const SystemRoots& roots = {}, std::optional<CpuMask> allowed = std::nullopt);

}  // namespace as2d
