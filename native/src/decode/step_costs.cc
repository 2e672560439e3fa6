#include "as2d/decode/step_costs.h"

#include <algorithm>
#include <cmath>

#include "as2d/error.h"

namespace as2d {

CostCurve::CostCurve(const std::map<int, double>& seconds) {
  for (const auto& [rows, cost] : seconds) {
    if (rows < 1 || !(cost > 0) || !std::isfinite(cost)) {
      throw Error("costs: a step of " + std::to_string(rows) + " rows cannot take " +
                  std::to_string(cost) + " seconds; measure again");
    }
    points_.emplace_back(rows, cost);
  }
}

double CostCurve::Seconds(std::size_t rows) const {
  const auto wanted = static_cast<double>(rows);
  if (points_.size() == 1 || wanted <= points_.front().first) return points_.front().second;
  auto right = std::ranges::lower_bound(points_, wanted, {}, [](const auto& p) { return p.first; });
  const bool beyond = right == points_.end();
  if (beyond) --right;
  const auto left = right - 1;
  const double slope = (right->second - left->second) / (right->first - left->first);
  if (beyond) return right->second + std::max(0.0, slope) * (wanted - right->first);
  return left->second + slope * (wanted - left->first);
}

}  // namespace as2d
