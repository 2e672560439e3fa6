// One run of an engine over the windows of a unit.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "as2d/engine.h"
#include "job.h"
#include "json.h"
#include "stop.h"

namespace as2d::runner {

/// What a lane did between two times, in seconds from the run's beginning.
struct Span {
  LaneName lane{};
  Activity activity{};
  std::int64_t window = 0;
  double begin = 0;
  double end = 0;
};

using Texts = std::vector<std::vector<TokenId>>;

/// One run that is over.
struct Ran {
  std::unique_ptr<Run> run;  ///< for its counters
  Texts texts;               ///< by window
  std::optional<std::string> lost;
  std::vector<Span> spans;  ///< idle times left out
  LaneReport target;
  LaneReport draft;
};

/// What is asked of the engine.
struct RunRequest {
  Method method = Method::kTarget;
  std::size_t budget = 0;
  RunOptions options = {};
};

RunRequest RequestOf(const Contender& contender);

/// Runs the windows, all of them queued at once. Throws Error when the target fails, Stopped when
/// the job is to end.
Ran RunOnce(Engine& engine, RunRequest request, std::vector<Window> windows, Stop& stop);

/// The fields of a bench's sample that come of counters.
void WriteCounters(Json& json, const Run& run);
/// The field "phases".
void WritePhases(Json& json, const Run& run);
/// The field "lanes".
void WriteLanes(Json& json, const Ran& ran);

}  // namespace as2d::runner
