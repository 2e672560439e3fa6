#include "one_run.h"

#include <array>
#include <chrono>
#include <iterator>
#include <string_view>
#include <utility>

#include "as2d/error.h"
#include "as2d/trace/counters.h"
#include "as2d/trace/events.h"

namespace as2d::runner {
namespace {

// Between looks at a run. The engine keeps the time itself: whoever waits for each of its events
// would only take a core from it now and then.
constexpr std::chrono::milliseconds kLook(20);

/// Events of a run as they come, until its last.
std::vector<Event> Listen(Run& run, Stop& stop) {
  std::vector<Event> events;
  const Stop::Work work(stop, [&run] { run.Cancel(); });
  while (true) {
    std::vector<Event> more = run.Poll(std::chrono::duration<double>(0));
    events.insert(events.end(), std::make_move_iterator(more.begin()),
                  std::make_move_iterator(more.end()));
    if (!events.empty() && events.back().kind == Event::Kind::kRunFinished) return events;
    stop.Sleep(kLook);
  }
}

/// Makes spans of the changes of both lanes.
class Spans {
 public:
  void Take(const Event& event) {
    Close(event.lane, event.seconds);
    if (event.activity == Activity::kIdle || event.activity == Activity::kDone) return;
    open_[static_cast<std::size_t>(event.lane)] =
        Span{event.lane, event.activity, event.window, event.seconds, 0};
  }
  std::vector<Span> End(double seconds) {
    Close(LaneName::kTarget, seconds);
    Close(LaneName::kDraft, seconds);
    return std::move(spans_);
  }

 private:
  void Close(LaneName lane, double seconds) {
    std::optional<Span>& span = open_[static_cast<std::size_t>(lane)];
    if (!span) return;
    span->end = seconds;
    spans_.push_back(*span);
    span.reset();
  }

  std::array<std::optional<Span>, 2> open_;
  std::vector<Span> spans_;
};

void WriteLane(Json& json, const LaneReport& report) {
  json.BeginObject().Field("cores", report.cores).Key("threads").BeginArray();
  for (const WorkerReport& worker : report.threads) {
    json.BeginObject()
        .Field("name", worker.name)
        .Field("requested", worker.requested.ToString())
        .Field("actual", worker.actual.ToString())
        .Field("refused", worker.refused)
        .EndObject();
  }
  json.EndArray().EndObject();
}

double Seconds(const Counter& nanoseconds) { return static_cast<double>(nanoseconds.Get()) * 1e-9; }

}  // namespace

RunRequest RequestOf(const Contender& contender) {
  RunRequest request{MethodOf(contender.method).value(), contender.budget};
  request.options.exact = contender.exact;
  request.options.batch = contender.windows;
  request.options.adaptive = contender.adaptive;
  if (contender.adaptive && !contender.alone_steps.empty()) {
    request.options.costs =
        StepCosts{CostCurve(contender.alone_steps), CostCurve(contender.drafted_steps),
                  contender.encode_base, contender.encode_per_second};
  }
  return request;
}

Ran RunOnce(Engine& engine, RunRequest request, std::vector<Window> windows, Stop& stop) {
  stop.Check();
  Ran ran;
  ran.texts.resize(windows.size());
  ran.run = engine.Start(request.method, request.budget, std::move(request.options));
  for (Window& window : windows) ran.run->Submit(std::move(window));
  ran.run->Finish();
  std::vector<Event> events = Listen(*ran.run, stop);
  const Event& last = events.back();
  if (!last.message.empty()) throw Error(last.message);
  stop.Check();  // before texts that are not there
  Spans spans;
  for (Event& event : events) {
    switch (event.kind) {
      case Event::Kind::kWindowFinished:
        ran.texts.at(static_cast<std::size_t>(event.window)) = std::move(event.tokens);
        break;
      case Event::Kind::kLaneChanged:
        spans.Take(event);
        break;
      case Event::Kind::kDrafterLost:
        ran.lost = event.message;
        break;
      default:
        break;
    }
  }
  ran.spans = spans.End(last.seconds);
  ran.target = engine.target_report();
  ran.draft = engine.draft_report();
  return ran;
}

void WriteCounters(Json& json, const Run& run) {
  const Counters& counters = run.counters();
  json.Field("seconds", run.wall_seconds());
  WritePhases(json, run);
  json.Field("windows", counters.windows.Get())
      .Field("tokens", counters.committed.Get())
      .Key("steps")
      .BeginObject()
      .Field("alone", counters.steps[0].Get())
      .Key("verify")
      .BeginObject();
  for (std::size_t i = 1; i < counters.steps.size(); ++i) {
    if (const std::int64_t count = counters.steps[i].Get(); count > 0) {
      json.Field(std::to_string(i), count);
    }
  }
  json.EndObject().EndObject();
  json.Field("proposed", counters.proposed.Get())
      .Field("accepted", counters.accepted.Get())
      .Field("realignments", counters.realignments.Get())
      .Field("drafted", counters.drafted.Get())
      .Field("stale_drafts", counters.stale_drafts.Get())
      .Field("lead_total", counters.lead_total.Get());
}

void WritePhases(Json& json, const Run& run) {
  const PhaseTimes& times = run.counters().nanoseconds;
  json.Key("phases")
      .BeginObject()
      .Field("encode", Seconds(times.encode))
      .Field("prompt", Seconds(times.prompt))
      .Field("decode", Seconds(times.decode))
      .Field("draft_encode", Seconds(times.draft_encode))
      .Field("draft_decode", Seconds(times.draft_decode))
      .Field("wall", run.wall_seconds())
      .EndObject();
}

void WriteLanes(Json& json, const Ran& ran) {
  json.Key("lanes").BeginObject().Key("target");
  WriteLane(json, ran.target);
  json.Key("draft");
  WriteLane(json, ran.draft);
  json.EndObject();
}

}  // namespace as2d::runner
