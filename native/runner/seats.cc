#include "seats.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "as2d/error.h"

namespace as2d::runner {
namespace {

LaneCores LaneOf(const std::vector<int>& cores, bool pin) {
  return {pin ? cores : std::vector<int>(), std::max(1, static_cast<int>(cores.size()))};
}

}  // namespace

Seat OpenSeat(const Job& job, const std::optional<std::size_t>& drafter, const Cores& cores) {
  const auto start = std::chrono::steady_clock::now();
  Seat seat;
  seat.engine = std::make_unique<Engine>(job.library, job.target, LaneOf(cores.target, cores.pin));
  if (drafter) {
    try {
      seat.engine->LoadDrafter(job.drafters[*drafter].folder, LaneOf(cores.draft, cores.pin));
    } catch (const Error& error) {
      seat.lost = std::string("no drafter, the target goes alone: ") + error.what();
    }
  }
  seat.load_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return seat;
}

Seat& Seats::Of(const Contender& contender) {
  const Cores cores = CoresOf(contender);
  const bool needs = contender.drafter && NeedsDrafter(MethodOf(contender.method).value());
  const std::optional<std::size_t> drafter = needs ? contender.drafter : std::nullopt;
  const Key key(drafter, contender.oracle, cores.target, drafter ? cores.draft : std::vector<int>(),
                cores.pin);
  const auto found = seats_.find(key);
  if (found != seats_.end()) return found->second;
  return seats_.emplace(key, OpenSeat(job_, drafter, cores)).first->second;
}

Cores Seats::CoresOf(const Contender& contender) const {
  Cores cores = contender.cores;
  if (contender.calibrated && width_) {
    cores.target.resize(std::min(cores.target.size(), *width_));
  }
  return cores;
}

}  // namespace as2d::runner
