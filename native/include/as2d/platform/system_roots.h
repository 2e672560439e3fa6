#pragma once

#include <filesystem>

namespace as2d {

/// Where the kernel's facts are read; tests point them at folders of their own.
struct SystemRoots {
  std::filesystem::path sysfs = "/sys/devices/system/cpu";
  std::filesystem::path proc = "/proc";
  std::filesystem::path cgroup = "/sys/fs/cgroup";
  std::filesystem::path thermal = "/sys/class/thermal";
  std::filesystem::path hwmon = "/sys/class/hwmon";
  std::filesystem::path power = "/sys/class/power_supply";

  /// The same places below `root`: of a machine that was copied into a folder.
  static SystemRoots Below(const std::filesystem::path& root) {
    SystemRoots roots;
    for (std::filesystem::path* const place :
         {&roots.sysfs, &roots.proc, &roots.cgroup, &roots.thermal, &roots.hwmon, &roots.power}) {
      *place = root / place->relative_path();
    }
    return roots;
  }
};

}  // namespace as2d
