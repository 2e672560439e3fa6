#include "as2d/platform/topology.h"

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "as2d/platform/affinity.h"
#include "as2d/platform/cpu_info.h"
#include "as2d/platform/cpu_quota.h"
#include "system_file.h"

namespace as2d {
namespace {

std::optional<std::string> CoreLine(const SystemRoots& roots, int core, const char* name) {
  return ReadLine(roots.sysfs / ("cpu" + std::to_string(core)) / name);
}

// A positive figure of one core, 0 if there is none.
int CoreFigure(const SystemRoots& roots, int core, const char* name) {
  const auto line = CoreLine(roots, core, name);
  if (!line) return 0;
  return std::max(0, ParseNumber<int>(*line).value_or(0));
}

struct Core {
  int id = 0;
  int capacity = 0;
  int max_khz = 0;
};

// Cores of about equal figures, largest first. Empty unless every core has a figure.
std::vector<std::vector<Core>> Group(std::vector<Core> cores, int Core::* figure) {
  for (const Core& core : cores) {
    if (core.*figure == 0) return {};
  }
  std::ranges::stable_sort(cores, std::greater<>(), figure);
  std::vector<std::vector<Core>> groups;
  for (const Core& core : cores) {
    // Compared with the group's fastest, not with the neighbour: a chain of small steps must not
    // put unlike cores together. Exactly 10 % less starts a new group.
    const bool same =
        !groups.empty() && 10LL * (core.*figure) > 9LL * (groups.back().front().*figure);
    if (!same) groups.emplace_back();
    groups.back().push_back(core);
  }
  return groups;
}

std::optional<CpuMask> ListedCores(const SystemRoots& roots, const char* name) {
  const auto line = ReadLine(roots.sysfs / name);
  return line ? CpuMask::Parse(*line) : std::nullopt;
}

// Allowed and online; where the platform cannot tell, as many ids as it counts cores.
CpuMask UsableCores(const SystemRoots& roots, std::optional<CpuMask> allowed) {
  if (!allowed) {
    allowed.emplace();
    const int count = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    for (int core = 0; core < count; ++core) allowed->Add(core);
  }
  const auto online = ListedCores(roots, "online");
  return online ? allowed->Intersect(*online) : *allowed;
}

// The kernel's own list of offline cores has those, too, that it could manage and nobody has built.
std::optional<CpuMask> OfflineCores(const SystemRoots& roots) {
  const auto present = ListedCores(roots, "present");
  const auto online = ListedCores(roots, "online");
  if (!present || !online) return std::nullopt;
  CpuMask offline;
  for (const int core : present->Cores()) {
    if (!online->Contains(core)) offline.Add(core);
  }
  return offline;
}

std::optional<std::vector<std::vector<int>>> Siblings(const SystemRoots& roots,
                                                      const CpuMask& usable) {
  std::set<std::vector<int>> groups;
  for (const int core : usable.Cores()) {
    auto line = CoreLine(roots, core, "topology/thread_siblings_list");
    if (!line) line = CoreLine(roots, core, "topology/core_cpus_list");  // its new name
    const auto threads = line ? CpuMask::Parse(*line) : std::nullopt;
    if (!threads) return std::nullopt;
    const CpuMask group = threads->Intersect(usable);
    if (group.Count() > 1) groups.insert(group.Cores());
  }
  return std::vector(groups.begin(), groups.end());
}

std::string Governor(const SystemRoots& roots, const std::vector<int>& cores) {
  std::set<std::string> governors;
  for (const int core : cores) {
    const auto line = CoreLine(roots, core, "cpufreq/scaling_governor");
    if (line && !line->empty()) governors.insert(*line);
  }
  std::string text;
  for (const std::string& governor : governors) text += (text.empty() ? "" : ", ") + governor;
  return text;
}

}  // namespace

const char* NameOf(ClusterSource source) {
  switch (source) {
    case ClusterSource::kNone:
      return "none";
    case ClusterSource::kCapacity:
      return "capacity";
    case ClusterSource::kMaxFrequency:
      return "frequency";
  }
  return "";
}

std::vector<int> Topology::Cores() const {
  std::vector<int> cores;
  for (const CoreCluster& cluster : clusters) {
    cores.insert(cores.end(), cluster.cores.begin(), cluster.cores.end());
  }
  return cores;
}

CpuMask Topology::Mask() const { return CpuMask(Cores()); }

Topology ReadTopology(const SystemRoots& roots, std::optional<CpuMask> allowed) {
  Topology topology;
  topology.can_pin = CanPinThreads();
  topology.cpu_quota = ReadCpuQuota(roots);
  topology.allowed = allowed ? allowed : ReadAffinity();
  topology.offline = OfflineCores(roots);
  const CpuMask usable = UsableCores(roots, topology.allowed);
  topology.siblings = Siblings(roots, usable);
  topology.caches = ReadCaches(usable, roots);

  std::vector<Core> cores;
  for (const int id : usable.Cores()) {
    cores.push_back({id, CoreFigure(roots, id, "cpu_capacity"),
                     CoreFigure(roots, id, "cpufreq/cpuinfo_max_freq")});
  }
  if (cores.empty()) return topology;

  auto groups = Group(cores, &Core::capacity);
  topology.source = ClusterSource::kCapacity;
  if (groups.size() < 2) {
    auto by_frequency = Group(cores, &Core::max_khz);
    if (by_frequency.size() > groups.size()) {
      groups = std::move(by_frequency);
      topology.source = ClusterSource::kMaxFrequency;
    }
  }
  if (groups.empty()) {
    groups.push_back(cores);
    topology.source = ClusterSource::kNone;
  }

  const CpuInfo info = CpuInfo::Read(roots.proc);
  for (const std::vector<Core>& group : groups) {
    CoreCluster& cluster = topology.clusters.emplace_back();
    for (const Core& core : group) {
      cluster.cores.push_back(core.id);
      cluster.capacity = std::max(cluster.capacity, core.capacity);
      cluster.max_khz = std::max(cluster.max_khz, core.max_khz);
    }
    std::ranges::sort(cluster.cores);
    const CpuMask mask(cluster.cores);
    cluster.model = info.Model(mask);
    cluster.features = info.CommonFeatures(mask);
    cluster.governor = Governor(roots, cluster.cores);
  }
  return topology;
}

}  // namespace as2d
