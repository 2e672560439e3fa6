#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "as2d/platform/system_roots.h"

namespace as2d::runner {

/// Memory for further engines, as as2d_cli/profile/room.py reckons it: whether one more fits beside
/// those that are open, by what these have taken.
class Room {
 public:
  /// Nothing is open yet.
  explicit Room(const SystemRoots& roots = {});

  /// One more is open, and has run.
  void Opened();
  /// Whether there is room for one as large as the largest so far. Not known is no.
  bool ForAnother() const;

 private:
  std::optional<std::int64_t> Held() const;
  std::optional<std::int64_t> Free() const;

  const std::filesystem::path proc_;
  std::optional<std::int64_t> before_;
  std::int64_t largest_ = 0;
};

}  // namespace as2d::runner
