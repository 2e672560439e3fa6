#include "as2d/platform/battery.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "system_file.h"

namespace as2d {

namespace fs = std::filesystem;

std::optional<Battery> ReadBattery(const SystemRoots& roots) {
  std::vector<fs::path> supplies;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(roots.power, none)) {
    supplies.push_back(entry.path());
  }
  std::ranges::sort(supplies);
  for (const fs::path& supply : supplies) {
    if (ReadLine(supply / "type") != "Battery" || ReadLine(supply / "scope") == "Device") continue;
    Battery battery;
    const auto number = [&](const char* file) {
      const auto line = ReadLine(supply / file);
      return line ? ParseNumber<int>(*line) : std::nullopt;
    };
    battery.percent = number("capacity");
    if (const auto tenths = number("temp")) battery.celsius = *tenths / 10.0;
    battery.status = ReadLine(supply / "status");
    return battery;
  }
  return std::nullopt;
}

}  // namespace as2d
