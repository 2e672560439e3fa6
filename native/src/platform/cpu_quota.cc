#include "as2d/platform/cpu_quota.h"

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

#include "system_file.h"

namespace as2d {
namespace {

namespace fs = std::filesystem;

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

bool Exists(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
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

}  // namespace

std::optional<double> ReadCpuQuota(const SystemRoots& roots) {
  std::ifstream groups(roots.proc / "self" / "cgroup");
  if (!groups) return std::nullopt;
  double smallest = 0;
  // Lines "<hierarchy>:<controllers>:<path>"; no controllers: version 2. A hybrid system has both.
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const fs::path group = line.substr(second + 1);

    double quota = 0;
    if (controllers.empty()) {
      // Where version 1 has the usual place, version 2 is mounted below it.
      const fs::path beside = roots.cgroup / "unified";
      quota = SmallestQuota(Exists(beside) ? beside : roots.cgroup, group, QuotaV2);
    } else if (("," + controllers + ",").find(",cpu,") != std::string::npos) {
      // The mount is named after all controllers on it, with a link for each.
      const fs::path joint = roots.cgroup / controllers;
      quota = SmallestQuota(Exists(joint) ? joint : roots.cgroup / "cpu", group, QuotaV1);
    }
    if (quota > 0 && (smallest == 0 || quota < smallest)) smallest = quota;
  }
  return smallest;
}

}  // namespace as2d
