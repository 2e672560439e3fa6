#include "as2d/platform/temperatures.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "system_file.h"

namespace as2d {
namespace {

namespace fs = std::filesystem;

// Drivers of sensors inside a processor; hwmon has those of disks and batteries, too.
constexpr std::array<std::string_view, 4> kProcessors = {"coretemp", "k10temp", "zenpower",
                                                         "cpu_thermal"};

// Entries of a folder whose names are `prefix`, a number, `suffix`: by the number.
std::vector<fs::path> Numbered(const fs::path& folder, std::string_view prefix,
                               std::string_view suffix) {
  std::vector<std::pair<int, fs::path>> found;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(prefix) || !name.ends_with(suffix)) continue;
    const auto number = ParseNumber<int>(std::string_view(name).substr(
        prefix.size(), name.size() - std::min(name.size(), prefix.size() + suffix.size())));
    if (number) found.emplace_back(*number, entry.path());
  }
  std::ranges::sort(found);
  std::vector<fs::path> paths;
  for (auto& [number, path] : found) paths.push_back(std::move(path));
  return paths;
}

void Take(std::vector<Temperature>& all, std::string sensor, const fs::path& file) {
  const auto line = ReadLine(file);
  const auto thousandths = line ? ParseNumber<int>(*line) : std::nullopt;
  // Sensors that are switched off say 0, absolute zero, or the largest number that they have.
  if (!thousandths || *thousandths <= 0 || *thousandths > 150'000) return;
  all.push_back({std::move(sensor), *thousandths / 1000.0});
}

}  // namespace

std::vector<Temperature> ReadTemperatures(const SystemRoots& roots) {
  std::vector<Temperature> all;
  for (const fs::path& zone : Numbered(roots.thermal, "thermal_zone", "")) {
    Take(all, ReadLine(zone / "type").value_or(zone.filename().string()), zone / "temp");
  }
  for (const fs::path& device : Numbered(roots.hwmon, "hwmon", "")) {
    const std::string name = ReadLine(device / "name").value_or("");
    if (std::ranges::find(kProcessors, name) == kProcessors.end()) continue;
    for (const fs::path& input : Numbered(device, "temp", "_input")) {
      const std::string file = input.filename().string();
      const std::string number = file.substr(0, file.find('_'));
      const auto label = ReadLine(device / (number + "_label"));
      Take(all, name + ' ' + label.value_or(number), input);
    }
  }
  return all;
}

}  // namespace as2d
