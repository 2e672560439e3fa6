#pragma once

#include <optional>
#include <span>

#include "as2d/platform/system_roots.h"

namespace as2d {

/// How fast cores are at the moment, in kHz; nullopt: unknown.
struct ClockRates {
  std::optional<int> now;    ///< Of the fastest of them.
  std::optional<int> limit;  ///< The most that any may reach now: less than ever where throttled.
};

ClockRates ReadClockRates(std::span<const int> cores, const SystemRoots& roots = {});

}  // namespace as2d
