#include "as2d/platform/caches.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>

#include "system_file.h"

namespace as2d {
namespace {

namespace fs = std::filesystem;

// "48K", "2M": the kernel writes kibibytes, others have written more.
std::optional<std::int64_t> ParseBytes(std::string_view text) {
  std::int64_t unit = 1;
  if (!text.empty()) {
    if (text.back() == 'K') unit = std::int64_t{1} << 10;
    if (text.back() == 'M') unit = std::int64_t{1} << 20;
    if (text.back() == 'G') unit = std::int64_t{1} << 30;
  }
  if (unit > 1) text.remove_suffix(1);
  const auto number = ParseNumber<std::int64_t>(text);
  if (!number || *number <= 0 || *number > std::numeric_limits<std::int64_t>::max() / unit) {
    return std::nullopt;
  }
  return *number * unit;
}

std::optional<Cache> ReadCache(const fs::path& folder, int core) {
  const auto level = ReadLine(folder / "level");
  auto kind = ReadLine(folder / "type");
  const auto size = ReadLine(folder / "size");
  if (!level || !kind || !size) return std::nullopt;
  const auto number = ParseNumber<int>(*level);
  const auto bytes = ParseBytes(*size);
  if (!number || !bytes) return std::nullopt;
  for (char& letter : *kind) {
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  const auto shared = ReadLine(folder / "shared_cpu_list");
  CpuMask cores = shared ? CpuMask::Parse(*shared).value_or(CpuMask()) : CpuMask();
  cores.Add(core);
  return Cache{*number, std::move(*kind), *bytes, cores};
}

}  // namespace

std::vector<Cache> ReadCaches(const CpuMask& cores, const SystemRoots& roots) {
  std::vector<Cache> caches;
  for (const int core : cores.Cores()) {
    const fs::path folder = roots.sysfs / ("cpu" + std::to_string(core)) / "cache";
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(folder, none)) {
      if (!entry.path().filename().string().starts_with("index")) continue;
      const auto cache = ReadCache(entry.path(), core);
      const auto same = [&](const Cache& other) {
        return other.level == cache->level && other.kind == cache->kind &&
               other.cores == cache->cores;
      };
      if (cache && std::ranges::none_of(caches, same)) caches.push_back(*cache);
    }
  }
  // A folder lists its entries in any order.
  std::ranges::sort(caches, {}, [](const Cache& cache) {
    return std::tuple(cache.level, cache.kind, cache.cores.Cores());
  });
  return caches;
}

}  // namespace as2d
