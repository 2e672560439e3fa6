#pragma once

#include "facts.h"
#include "job.h"
#include "report.h"
#include "stop.h"

namespace as2d::runner {

/// Verifies every contender on every unit, then times all of them, in alternating order, as
/// as2d_cli/bench/measure.py has it. False: a text is not what was promised or expected. Throws
/// Error, Stopped.
bool RunBench(const Job& job, const Machine& machine, Report& report, Stop& stop);

}  // namespace as2d::runner
