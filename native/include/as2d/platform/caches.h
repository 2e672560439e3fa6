#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "as2d/platform/cpu_mask.h"
#include "as2d/platform/system_roots.h"

namespace as2d {

/// One cache of the machine.
struct Cache {
  int level = 0;           ///< 1 is next to the core.
  std::string kind;        ///< "data", "instruction" or "unified".
  std::int64_t bytes = 0;  ///< More than 0.
  CpuMask cores;           ///< That share it, whether the process may use them or not.
};

/// The caches of `cores`, each once, the lowest levels first. Those whose level, kind or size
/// cannot be read are left out.
std::vector<Cache> ReadCaches(const CpuMask& cores, const SystemRoots& roots = {});

}  // namespace as2d
