#include "as2d/platform/topology.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

#include "as2d/platform/affinity.h"

namespace as2d {
namespace {

namespace fs = std::filesystem;

// First line without blanks at its end; nullopt if there is no such file or it cannot be read.
std::optional<std::string> ReadLine(const fs::path& file) {
  std::ifstream stream(file);
  std::string line;
  if (!std::getline(stream, line)) return std::nullopt;
  line.erase(line.find_last_not_of(" \t\r") + 1);
  return line;
}

template <typename Number>
std::optional<Number> ParseNumber(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// A positive figure of one core, 0 if there is none.
int CoreFigure(const SystemRoots& roots, int core, const char* name) {
  const auto line = ReadLine(roots.sysfs / ("cpu" + std::to_string(core)) / name);
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

// Time per period, both in microseconds, as cores; nullopt if the pair is no limit.
std::optional<double> QuotaCores(std::string_view quota, std::string_view period) {
  const auto time = ParseNumber<long long>(quota);  // "max" and -1: no limit.
  const auto span = ParseNumber<long long>(period);
  if (!time || !span || *time <= 0 || *span <= 0) return std::nullopt;
  return static_cast<double>(*time) / static_cast<double>(*span);
}

std::optional<double> QuotaV2(const fs::path& folder) {
  const auto line = ReadLine(folder / "cpu.max");
  if (!line) return std::nullopt;
  const std::size_t blank = line->find(' ');
  if (blank == std::string::npos) return std::nullopt;
  return QuotaCores(std::string_view(*line).substr(0, blank),
                    std::string_view(*line).substr(blank + 1));
}

std::optional<double> QuotaV1(const fs::path& folder) {
  const auto quota = ReadLine(folder / "cpu.cfs_quota_us");
  const auto period = ReadLine(folder / "cpu.cfs_period_us");
  if (!quota || !period) return std::nullopt;
  return QuotaCores(*quota, *period);
}

// The smallest quota of `group` and the groups that contain it. Inside a container the path may be
// the host's, which is not there; its parents are tried all the same, up to the mounted root.
double SmallestQuota(const fs::path& mount, const fs::path& group,
                     std::optional<double> (*read)(const fs::path&)) {
  double smallest = 0;
  const auto take = [&](const fs::path& folder) {
    const auto cores = read(folder);
    if (cores && (smallest == 0 || *cores < smallest)) smallest = *cores;
  };
  take(mount);
  fs::path folder = mount;
  for (const fs::path& name : group.relative_path()) {
    // A process above its cgroup namespace's root is shown as "/../..": nothing to see from here.
    if (name == "..") break;
    folder /= name;
    take(folder);
  }
  return smallest;
}

double ReadCpuQuota(const SystemRoots& roots) {
  double smallest = 0;
  std::ifstream groups(roots.proc / "self" / "cgroup");
  // Lines "<hierarchy>:<controllers>:<path>"; no controllers: version 2. A hybrid system has both.
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const fs::path group = line.substr(second + 1);

    double quota = 0;
    if (controllers.empty()) {
      quota = SmallestQuota(roots.cgroup, group, QuotaV2);
    } else if (("," + controllers + ",").find(",cpu,") != std::string::npos) {
      // The mount is named after all controllers on it, with a link for each.
      std::error_code ignored;
      const fs::path joint = roots.cgroup / controllers;
      quota =
          SmallestQuota(fs::exists(joint, ignored) ? joint : roots.cgroup / "cpu", group, QuotaV1);
    }
    if (quota > 0 && (smallest == 0 || quota < smallest)) smallest = quota;
  }
  return smallest;
}

// Allowed and online; where the platform cannot tell, as many ids as it counts cores.
CpuMask UsableCores(const SystemRoots& roots, std::optional<CpuMask> allowed) {
  if (!allowed) allowed = ReadAffinity();
  if (!allowed) {
    allowed.emplace();
    const int count = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    for (int core = 0; core < count; ++core) allowed->Add(core);
  }
  const auto line = ReadLine(roots.sysfs / "online");
  const auto online = line ? CpuMask::Parse(*line) : std::nullopt;
  return online ? allowed->Intersect(*online) : *allowed;
}

}  // namespace

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

  std::vector<Core> cores;
  for (const int id : UsableCores(roots, allowed).Cores()) {
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

  for (const std::vector<Core>& group : groups) {
    CoreCluster& cluster = topology.clusters.emplace_back();
    for (const Core& core : group) {
      cluster.cores.push_back(core.id);
      cluster.capacity = std::max(cluster.capacity, core.capacity);
      cluster.max_khz = std::max(cluster.max_khz, core.max_khz);
    }
    std::ranges::sort(cluster.cores);
  }
  return topology;
}

}  // namespace as2d
