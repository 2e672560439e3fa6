#pragma once

#include <string>
#include <vector>

#include "as2d/platform/system_roots.h"

namespace as2d {

/// What a sensor says.
struct Temperature {
  std::string sensor;  ///< The kernel's name: "cpu-1-0-usr", "x86_pkg_temp", "coretemp Core 0".
  double celsius = 0;
};

/// All thermal zones, and the sensors that processors have of their own, in the order of the
/// kernel's numbers. A sensor that cannot be read, or says what cannot be, is left out.
std::vector<Temperature> ReadTemperatures(const SystemRoots& roots = {});

}  // namespace as2d
