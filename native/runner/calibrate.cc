#include "calibrate.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "one_run.h"
#include "seats.h"

namespace as2d::runner {
namespace {

constexpr int kRounds = 4;  // the first is a warm-up; the best of the others counts

/// 1, 2, 4, ... and `most` itself.
std::vector<std::size_t> WidthsUpTo(std::size_t most) {
  std::vector<std::size_t> widths;
  for (std::size_t width = 1; width < most; width *= 2) widths.push_back(width);
  widths.push_back(most);
  return widths;
}

}  // namespace

std::optional<std::size_t> Calibrate(const Job& job, Clips& clips, Report& report, Stop& stop) {
  const Contender& baseline = *std::ranges::find(job.contenders, true, &Contender::baseline);
  const std::size_t most = baseline.cores.target.size();
  if (most < 2) return std::nullopt;
  std::vector<std::vector<Window>> pieces;
  pieces.push_back({clips.WindowsOf(job.units.front()).front()});
  if (const std::size_t middle = job.units.size() / 2; middle > 0) {
    pieces.push_back({clips.WindowsOf(job.units[middle]).front()});
  }
  std::vector<std::size_t> widths = WidthsUpTo(most);
  std::map<std::size_t, Seat> seats;
  std::map<std::size_t, std::vector<double>> best;
  for (const std::size_t width : widths) {
    stop.Check();
    Cores cores = baseline.cores;
    cores.target.resize(width);
    seats[width] = OpenSeat(job, std::nullopt, cores);
    best[width].resize(pieces.size(), std::numeric_limits<double>::infinity());
  }
  for (int round = 0; round < kRounds; ++round) {
    for (const std::size_t width : widths) {
      for (std::size_t i = 0; i < pieces.size(); ++i) {
        const Ran ran = RunOnce(*seats[width].engine, RequestOf(baseline), pieces[i], stop);
        if (round > 0) best[width][i] = std::min(best[width][i], ran.run->wall_seconds());
      }
    }
    std::ranges::reverse(widths);
  }
  std::vector<std::pair<double, std::size_t>> totals;  // of equals the one with fewer cores
  for (const auto& [width, seconds] : best) {
    double total = 0;
    for (const double taken : seconds) total += taken;
    totals.emplace_back(total, width);
  }
  const std::size_t chosen = std::ranges::min(totals).second;
  report.Line("widths", [&](Json& json) {
    json.Key("widths").BeginObject();
    for (const auto& [seconds, width] : totals) json.Field(std::to_string(width), seconds);
    json.EndObject().Field("best", chosen);
  });
  return chosen;
}

}  // namespace as2d::runner
