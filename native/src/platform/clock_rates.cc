#include "as2d/platform/clock_rates.h"

#include <algorithm>
#include <string>

#include "system_file.h"

namespace as2d {
namespace {

void TakeLargest(std::optional<int>& largest, const std::filesystem::path& file) {
  const auto line = ReadLine(file);
  const auto khz = line ? ParseNumber<int>(*line) : std::nullopt;
  if (khz && *khz > 0) largest = std::max(largest.value_or(0), *khz);
}

}  // namespace

ClockRates ReadClockRates(std::span<const int> cores, const SystemRoots& roots) {
  ClockRates rates;
  for (const int core : cores) {
    const auto folder = roots.sysfs / ("cpu" + std::to_string(core)) / "cpufreq";
    TakeLargest(rates.now, folder / "scaling_cur_freq");
    TakeLargest(rates.limit, folder / "scaling_max_freq");
  }
  return rates;
}

}  // namespace as2d
