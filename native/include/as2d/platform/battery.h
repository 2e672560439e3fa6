#pragma once

#include <optional>
#include <string>

#include "as2d/platform/system_roots.h"

namespace as2d {

/// What the kernel says of a battery; nullopt: unknown.
struct Battery {
  std::optional<int> percent;
  std::optional<double> celsius;
  std::optional<std::string> status;  ///< "Charging", "Discharging", "Full", ...
};

/// The machine's own battery; nullopt: there is none, or it may not be read. Those of mice and pens
/// are left out.
std::optional<Battery> ReadBattery(const SystemRoots& roots = {});

}  // namespace as2d
