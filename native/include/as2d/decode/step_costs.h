// What forwards cost on this machine: measured before the run (see profile/timing.h).
#pragma once

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

namespace as2d {

/// Seconds of a forward by its number of rows.
class CostCurve {
 public:
  /// Nothing is known.
  CostCurve() = default;
  /// Known for these numbers of rows. Throws Error unless all of them, and all seconds, are above
  /// 0.
  explicit CostCurve(const std::map<int, double>& seconds);

  bool known() const { return !points_.empty(); }

  /// Between two known numbers it is a straight line; below the first its own figure, and beyond
  /// the last the line goes on, but never down. Only when known.
  double Seconds(std::size_t rows) const;

 private:
  std::vector<std::pair<double, double>> points_;
};

/// What is known of the target; every part may be missing.
struct StepCosts {
  CostCurve alone = {};          ///< the draft lane rests: all cores
  CostCurve drafted = {};        ///< the draft lane works: the target lane's own cores
  double encode_base = 0;        ///< seconds of an encoder pass: so many, ...
  double encode_per_second = 0;  ///< ... and so many more for each second of audio
};

}  // namespace as2d
