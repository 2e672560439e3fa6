#include "drafts.h"

#include <cstddef>
#include <utility>

#include "as2d/engine.h"
#include "clips.h"

namespace as2d::runner {

void RunDrafts(const Job& job, Report& report, Stop& stop) {
  Clips clips(job);
  for (std::size_t unit = 0; unit < job.units.size(); ++unit) {
    for (std::size_t drafter = 0; drafter < job.drafters.size(); ++drafter) {
      report.Line("doing", [&](Json& json) {
        json.Field("what", "draft").Field("contender", std::nullopt).Field("unit", unit);
      });
      for (Window& window : clips.WindowsOf(job.units[unit])) {
        stop.Check();
        const std::int64_t index = window.index;
        const Said said =
            DraftAlone(job.library, job.drafters[drafter].folder, std::move(window), job.target);
        report.Line("draft", [&](Json& json) {
          json.Field("drafter", drafter)
              .Field("unit", unit)
              .Field("window", index)
              .Field("tokens", said.tokens);
        });
      }
    }
  }
}

}  // namespace as2d::runner
