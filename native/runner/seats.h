#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "as2d/engine.h"
#include "job.h"

namespace as2d::runner {

/// An open engine.
struct Seat {
  std::unique_ptr<Engine> engine;
  double load_seconds = 0;
  std::optional<std::string> lost;  ///< why its drafter is of no use
};

/// The engine of a target, and a drafter or none, on these cores. Throws Error when the target
/// cannot be loaded; a drafter that cannot is `lost`. Blocks.
Seat OpenSeat(const Job& job, const std::optional<std::size_t>& drafter, const Cores& cores);

/// Engines of contenders, opened when they are first used; contenders that differ in nothing that
/// is loaded share one.
class Seats {
 public:
  /// `job` must outlive it.
  explicit Seats(const Job& job) : job_(job) {}

  /// Calibrated contenders get so many of their target's cores.
  void Narrow(std::size_t width) { width_ = width; }
  Seat& Of(const Contender& contender);
  /// Cores of a contender.
  Cores CoresOf(const Contender& contender) const;

 private:
  using Key =
      std::tuple<std::optional<std::size_t>, bool, std::vector<int>, std::vector<int>, bool>;

  const Job& job_;
  std::optional<std::size_t> width_;
  std::map<Key, Seat> seats_;
};

}  // namespace as2d::runner
