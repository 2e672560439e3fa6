#include "profile.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "as2d/engine.h"
#include "as2d/error.h"
#include "clips.h"
#include "one_run.h"
#include "room.h"
#include "seats.h"

namespace as2d::runner {
namespace {

// The same as as2d_cli/profile/measure.py and visit.py have, by the same names.
constexpr std::size_t kLeastLayouts = 2;
constexpr std::size_t kLeastRounds = 2;
constexpr std::size_t kMostRounds = 12;
constexpr double kFirstShare = 0.5;
constexpr double kTogetherShare = 0.05;
constexpr double kMostTogether = 1;
constexpr std::size_t kCopied = std::size_t{64} << 20;
constexpr std::size_t kRepeats = 5;
constexpr std::size_t kOwnEvery = 2;

constexpr double kRate = 16'000;

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Seconds of the target's work in one visit: of forwards by number of rows, and of a pass of the
/// encoder over so much audio.
struct TargetTimes {
  std::vector<std::vector<double>> steps;
  double audio = 0;
  double encode = 0;
};

struct TimedDraft {
  double audio = 0;
  DraftTiming timing;
};

/// A way to share the cores that is measured.
struct Lane {
  std::size_t number = 0;
  Seat seat;
  std::size_t visits = 0;
};

class Profile {
 public:
  Profile(const Job& job, Report& report, Stop& stop) : job_(job), report_(report), stop_(stop) {
    window_ = Clips(job).WindowsOf(job.units.front()).front();
    twice_ = window_;
    twice_.samples.insert(twice_.samples.end(), window_.samples.begin(), window_.samples.end());
  }

  void All() {
    end_ = Now() + job_.effort.seconds;
    // Those that fit into the memory together are measured in turn; and so on with the rest.
    while (opened_ < job_.layouts.size()) {
      if (opened_ >= kLeastLayouts && Left() <= 0) break;
      MeasureGroup();
    }
    TellBandwidth();
  }

 private:
  /// Calls what measures, which the job's end cancels.
  template <typename Measure>
  auto Timed(Engine& engine, const Measure& measure) {
    stop_.Check();
    const Stop::Work work(stop_, [&engine] { engine.CancelTiming(); });
    return measure();
  }

  double Left() const { return std::max(0.0, end_ - Now()); }

  /// Opens as many as there is room and time for, and visits them in turn.
  void MeasureGroup() {
    const double end = Now() + Left() * kFirstShare;
    std::vector<Lane> group;
    while (opened_ < job_.layouts.size()) {
      if (!group.empty() && !room_.ForAnother()) break;
      if (opened_ >= kLeastLayouts && Now() >= end) break;
      stop_.Check();
      const Cores& layout = job_.layouts[opened_];
      Seat seat = OpenSeat(job_, layout.draft.empty() ? std::nullopt : std::optional(0), layout);
      if (seat.lost) throw Error(*seat.lost);
      group.push_back({opened_++, std::move(seat)});
      Visit(group.back());
      room_.Opened();
    }
    const auto count = static_cast<double>(group.size());
    const auto rest = static_cast<double>(job_.layouts.size() - opened_);
    VisitInTurn(group, Now() + Left() * count / (count + rest));
  }

  /// The first round is over. A B C, then C B A, as in a bench.
  void VisitInTurn(std::vector<Lane>& group, double end) {
    for (std::size_t round = 1; round < kMostRounds; ++round) {
      const double begun = Now();
      std::ranges::reverse(group);
      for (Lane& lane : group) Visit(lane);
      const double now = Now();
      if (round + 1 >= kLeastRounds && now + (now - begun) / 2 > end) break;
    }
  }

  void Visit(Lane& lane) {
    report_.Line("doing", [&](Json& json) {
      json.Field("what", "measure").Field("contender", std::nullopt).Field("unit", std::nullopt);
    });
    Engine& engine = *lane.seat.engine;
    Time(engine, lane);
    if (lane.number == 0) {
      Tell(Hear(engine, 1), 1);
      if (lane.visits < job_.effort.batches) {
        Tell(Hear(engine, job_.effort.batch), job_.effort.batch);
      }
    }
    ++lane.visits;
  }

  /// The target alone on so many windows at a time.
  Ran Hear(Engine& engine, std::size_t count) {
    std::vector<Window> windows(count, window_);
    for (std::size_t i = 0; i < count; ++i) windows[i].index = static_cast<std::int64_t>(i);
    return RunOnce(engine, {count > 1 ? Method::kBatched : Method::kTarget, count > 1 ? count : 0},
                   std::move(windows), stop_);
  }

  void Tell(const Ran& ran, std::size_t windows) {
    std::int64_t steps = 0;
    for (const Counter& counter : ran.run->counters().steps) steps += counter.Get();
    report_.Line("heard", [&](Json& json) {
      json.Field("windows", windows).Field("texts", ran.texts).Field("steps", steps);
      WritePhases(json, *ran.run);
    });
  }

  /// A few samples of everything.
  void Time(Engine& engine, const Lane& lane) {
    const bool has_draft = !job_.layouts[lane.number].draft.empty();
    const TargetTimes alone = TimeTarget(engine, lane.visits, true);
    std::optional<TargetTimes> own;
    std::optional<TimedDraft> draft;
    std::optional<TogetherTiming> together;
    if (has_draft) {
      if (lane.visits % kOwnEvery == 0) own = TimeTarget(engine, lane.visits / kOwnEvery, false);
      const Window& window = lane.visits % 2 == 0 ? window_ : twice_;
      draft = TimedDraft{Audio(window),
                         Timed(engine, [&] { return engine.TimeDraft(window, {.lend = false}); })};
      const double seconds = std::min(kMostTogether, job_.effort.seconds * kTogetherShare);
      together = Timed(
          engine, [&] { return engine.TimeTogether(job_.effort.rows, seconds, window_, true); });
    }
    report_.Line("visit", [&](Json& json) {
      json.Field("layout", lane.number).Key("alone");
      Write(json, alone);
      json.Key("own");
      own ? Write(json, *own) : json.Value(std::nullopt);
      json.Key("draft");
      draft ? Write(json, *draft) : json.Value(std::nullopt);
      json.Key("beside");
      together ? WriteSteps(json, together->steps) : json.Value(std::nullopt);
      json.Key("drafts").BeginArray();
      if (together) {
        for (const DraftTiming& timing : together->drafts) {
          Write(json, TimedDraft{Audio(window_), timing});
        }
      }
      json.EndArray();
    });
  }

  /// `number` of visits that have timed this before: audio of each length has its turn.
  TargetTimes TimeTarget(Engine& engine, std::size_t number, bool lend) {
    TargetTimes times;
    times.steps =
        Timed(engine, [&] { return engine.TimeSteps(job_.effort.rows, kRepeats, {.lend = lend}); });
    times.audio = job_.effort.audio[number % job_.effort.audio.size()];
    const TimingOptions once{.lend = lend, .most_seconds = 0};
    times.encode = Timed(engine, [&] { return engine.TimeEncode(times.audio, 1, once); }).front();
    return times;
  }

  static double Audio(const Window& window) {
    return static_cast<double>(window.samples.size()) / kRate;
  }

  Json& Write(Json& json, const TargetTimes& times) const {
    json.BeginObject().Key("steps");
    WriteSteps(json, times.steps);
    return json.Field("audio", times.audio).Field("encode", times.encode).EndObject();
  }

  Json& WriteSteps(Json& json, const std::vector<std::vector<double>>& steps) const {
    json.BeginObject();
    for (std::size_t i = 0; i < steps.size(); ++i) {
      json.Field(std::to_string(job_.effort.rows[i]), steps[i]);
    }
    return json.EndObject();
  }

  static Json& Write(Json& json, const TimedDraft& draft) {
    return json.BeginObject()
        .Field("audio", draft.audio)
        .Field("encode", draft.timing.encode)
        .Field("steps", draft.timing.steps)
        .Field("tokens", draft.timing.tokens)
        .Field("complete", draft.timing.complete)
        .EndObject();
  }

  /// The best of a few copies of what is larger than any cache.
  void TellBandwidth() {
    const std::vector<char> source(kCopied, 1);
    std::vector<char> target(kCopied);
    double best = 0;
    for (int i = 0; i < 4; ++i) {
      stop_.Check();
      const double begun = Now();
      std::memcpy(target.data(), source.data(), kCopied);
      const double taken = Now() - begun;
      if (target[kCopied / 2] == 1 && taken > 0) {
        best = std::max(best, 2.0 * static_cast<double>(kCopied) / taken);
      }
    }
    report_.Line("bandwidth", [&](Json& json) { json.Field("bytes_per_second", best); });
  }

  const Job& job_;
  Report& report_;
  Stop& stop_;
  Room room_;
  double end_ = 0;          // when the time is over
  std::size_t opened_ = 0;  // layouts that were visited
  Window window_;
  Window twice_;  // what it hears, said twice
};

}  // namespace

void RunProfile(const Job& job, Report& report, Stop& stop) { Profile(job, report, stop).All(); }

}  // namespace as2d::runner
