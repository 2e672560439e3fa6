#include "room.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

namespace as2d::runner {
namespace {

/// Of the free memory one engine more may take one part in so many: others need some, too.
constexpr std::int64_t kSpared = 2;

/// Bytes of a line "NAME: N kB".
std::optional<std::int64_t> ReadBytes(const std::filesystem::path& path, std::string_view name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(name)) continue;
    std::istringstream number(line.substr(name.size()));
    std::int64_t kib = 0;
    if (number >> kib) return kib * 1024;
  }
  return std::nullopt;
}

}  // namespace

Room::Room(const SystemRoots& roots) : proc_(roots.proc), before_(Held()) {}

void Room::Opened() {
  const std::optional<std::int64_t> now = Held();
  if (now && before_) largest_ = std::max(largest_, *now - *before_);
  before_ = now;
}

bool Room::ForAnother() const {
  const std::optional<std::int64_t> free = Free();
  return free && before_ && largest_ * kSpared <= *free;
}

std::optional<std::int64_t> Room::Held() const {
  return ReadBytes(proc_ / "self" / "status", "VmRSS:");
}

std::optional<std::int64_t> Room::Free() const {
  return ReadBytes(proc_ / "meminfo", "MemAvailable:");
}

}  // namespace as2d::runner
