#pragma once

#include <optional>
#include <string>
#include <vector>

#include "as2d/platform/caches.h"
#include "as2d/platform/cpu_mask.h"
#include "as2d/platform/system_roots.h"

namespace as2d {

/// Cores of about the same speed.
struct CoreCluster {
  std::vector<int> cores;  ///< Kernel ids, ascending; never empty.
  int capacity = 0;        ///< Largest cpu_capacity of the cores, 1..1024; 0 if unknown.
  int max_khz = 0;         ///< Largest cpuinfo_max_freq of the cores in kHz; 0 if unknown.
  std::string model;       ///< See CpuInfo::Model; "" if unknown.
  std::string governor;    ///< Of cpufreq; several joined by ", ", "" if unknown.
  /// Instruction sets that all of the cores have, see CpuInfo::CommonFeatures; nullopt if unknown.
  std::optional<std::vector<std::string>> features;
};

/// What told the clusters apart.
enum class ClusterSource {
  kNone,      ///< Nothing to go by: one cluster.
  kCapacity,  ///< cpu_capacity, the scheduler's own figure.
  kMaxFrequency,
};

/// "none", "capacity" or "frequency".
const char* NameOf(ClusterSource source);

struct Topology {
  /// Usable cores (online and allowed), the fastest cluster first. Empty only if no core is usable.
  std::vector<CoreCluster> clusters;
  ClusterSource source = ClusterSource::kNone;
  /// See ReadCpuQuota: 0 if there is no limit, nullopt if unknown.
  std::optional<double> cpu_quota;
  /// False: the platform cannot pin threads, and core ids are no more than a count.
  bool can_pin = true;
  /// Cores that the process may use, as the kernel reports them; nullopt if it cannot tell.
  std::optional<CpuMask> allowed;
  /// Cores that are there and switched off; nullopt if unknown.
  std::optional<CpuMask> offline;
  /// Usable cores that are threads of one physical core, two or more in each group: they share its
  /// arithmetic units. Empty if each is a core of its own; nullopt if unknown of one of them.
  std::optional<std::vector<std::vector<int>>> siblings;
  /// Caches of the usable cores.
  std::vector<Cache> caches;

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
