#pragma once

#include "job.h"
#include "report.h"
#include "stop.h"

namespace as2d::runner {

/// Measures what the work of both lanes costs, as as2d_cli/profile/measure.py has it. Throws Error,
/// Stopped.
void RunProfile(const Job& job, Report& report, Stop& stop);

}  // namespace as2d::runner
