#pragma once

#include <cstddef>
#include <optional>

#include "clips.h"
#include "job.h"
#include "report.h"
#include "stop.h"

namespace as2d::runner {

/// On how many of its cores the baseline is fastest, judged by the first window of the first unit
/// and of the one in the middle, as as2d_cli/bench/calibrate.py does it; tells the line "widths".
/// nullopt where there is no choice. Throws Error, Stopped.
std::optional<std::size_t> Calibrate(const Job& job, Clips& clips, Report& report, Stop& stop);

}  // namespace as2d::runner
