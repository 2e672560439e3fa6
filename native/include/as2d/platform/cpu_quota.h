#pragma once

#include <optional>

#include "as2d/platform/system_roots.h"

namespace as2d {

/// CPU time that the process's cgroups grant per second of wall time, in cores: the smallest of the
/// process's own group and all that contain it, of version 1, version 2, or both. 0: no limit.
/// nullopt: the process's groups cannot be read.
std::optional<double> ReadCpuQuota(const SystemRoots& roots = {});

}  // namespace as2d
