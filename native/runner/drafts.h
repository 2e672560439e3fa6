#pragma once

#include "job.h"
#include "report.h"
#include "stop.h"

namespace as2d::runner {

/// Tells what each drafter says of each window, all by itself. Throws Error, Stopped.
void RunDrafts(const Job& job, Report& report, Stop& stop);

}  // namespace as2d::runner
