// What the machine is, and how it is at a moment.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "as2d/platform/battery.h"
#include "as2d/platform/clock_rates.h"
#include "as2d/platform/system_roots.h"
#include "as2d/platform/temperatures.h"
#include "as2d/platform/topology.h"
#include "report.h"

namespace as2d::runner {

struct Moment {
  std::vector<Temperature> temperatures;
  std::vector<ClockRates> rates;  ///< of each cluster
  std::vector<std::string> governors;
  std::optional<Battery> battery;
};

/// The machine that the runner is on.
class Machine {
 public:
  explicit Machine(SystemRoots roots = {});

  const Topology& topology() const { return topology_; }
  Moment Now() const;
  /// Degrees Celsius; nullopt: no sensor can be read.
  std::optional<double> Hottest() const;
  /// Writes the line "machine". `version` is ONNX Runtime's; without one, `problem` says why.
  void Tell(Report& report, const std::optional<std::string>& version,
            const std::optional<std::string>& problem) const;
  /// Writes the line "moment".
  void TellMoment(Report& report) const;

 private:
  const SystemRoots roots_;
  const Topology topology_;
};

void Write(Json& json, const Moment& moment);

}  // namespace as2d::runner
