#include "bench.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

#include "as2d/error.h"
#include "calibrate.h"
#include "clips.h"
#include "one_run.h"
#include "seats.h"

namespace as2d::runner {
namespace {

class Bench {
 public:
  Bench(const Job& job, const Machine& machine, Report& report, Stop& stop)
      : job_(job),
        machine_(machine),
        report_(report),
        stop_(stop),
        clips_(job),
        seats_(job),
        references_(job.units.size()),
        loaded_(job.contenders.size()),
        withdrawn_(job.contenders.size()) {}

  bool All() {
    if (std::ranges::any_of(job_.contenders, &Contender::calibrated)) {
      Doing("calibrate", std::nullopt, std::nullopt);
      if (const auto width = Calibrate(job_, clips_, report_, stop_)) seats_.Narrow(*width);
    }
    for (std::size_t unit = 0; unit < job_.units.size(); ++unit) VerifyUnit(unit);
    for (std::size_t round = 0; round < job_.repeats; ++round) {
      for (std::size_t unit = 0; unit < job_.units.size(); ++unit) TimeUnit(round, unit);
    }
    if (job_.drafts) TellDrafts();
    return as_promised_;
  }

 private:
  using Number = std::optional<std::size_t>;

  void Doing(const char* what, Number contender, Number unit) {
    report_.Line("doing", [&](Json& json) {
      json.Field("what", what).Field("contender", contender).Field("unit", unit);
    });
  }

  /// Numbers of the contenders that take part.
  std::vector<std::size_t> EnteredIn(std::size_t unit) const {
    std::vector<std::size_t> entered;
    for (std::size_t i = 0; i < job_.contenders.size(); ++i) {
      if (job_.contenders[i].TakesPartIn(unit)) entered.push_back(i);
    }
    return entered;
  }

  Seat& Load(std::size_t number) {
    if (!loaded_[number]) Doing("load", number, std::nullopt);
    Seat& seat = seats_.Of(job_.contenders[number]);
    stop_.Check();
    if (!loaded_[number]) {
      loaded_[number] = true;
      report_.Line("loaded", [&](Json& json) {
        json.Field("contender", number)
            .Field("load_seconds", seat.load_seconds)
            .Field("lost", seat.lost);
      });
    }
    if (seat.lost) Withdraw(number, *seat.lost);
    return seat;
  }

  void Withdraw(std::size_t number, const std::string& why) {
    if (withdrawn_[number]) return;
    withdrawn_[number] = true;
    as_promised_ = false;
    report_.Line("withdrawn",
                 [&](Json& json) { json.Field("contender", number).Field("why", why); });
  }

  Ran Go(std::size_t number, std::size_t unit) {
    const Contender& contender = job_.contenders[number];
    Seat& seat = Load(number);
    if (contender.oracle) {
      Script script;
      for (std::size_t i = 0; i < references_[unit].size(); ++i) {
        script[static_cast<std::int64_t>(i)] = references_[unit][i];
      }
      seat.engine->SetDrafter(
          std::make_shared<ScriptedDrafter>(std::move(script), ScriptedDrafter::Options{}));
    }
    Ran ran =
        RunOnce(*seat.engine, RequestOf(contender), clips_.WindowsOf(job_.units[unit]), stop_);
    seat.lost = ran.lost;
    return ran;
  }

  // Verifying

  void VerifyUnit(std::size_t unit) {
    std::vector<std::size_t> entered = EnteredIn(unit);
    std::ranges::stable_partition(entered,
                                  [&](std::size_t i) { return job_.contenders[i].reference; });
    for (const std::size_t number : entered) {
      Load(number);
      if (withdrawn_[number]) continue;
      Doing("verify", number, unit);
      const Ran ran = Go(number, unit);
      if (job_.contenders[number].reference) references_[unit] = ran.texts;
      const std::vector<std::size_t> differing = Differing(unit, ran.texts);
      const std::vector<std::size_t> unexpected = Unexpected(unit, ran.texts);
      report_.Line("verified", [&](Json& json) {
        json.Field("contender", number)
            .Field("unit", unit)
            .Field("texts", ran.texts)
            .Field("differing", differing)
            .Field("unexpected", unexpected)
            .Field("lost", ran.lost);
        WriteLanes(json, ran);
      });
      const bool promised = job_.contenders[number].promised;
      if (promised && !(differing.empty() && unexpected.empty())) as_promised_ = false;
      if (ran.lost) Withdraw(number, *ran.lost);
    }
  }

  std::vector<std::size_t> Differing(std::size_t unit, const Texts& texts) const {
    std::vector<std::size_t> differing;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      if (texts[i] != references_[unit][i]) differing.push_back(i);
    }
    return differing;
  }

  std::vector<std::size_t> Unexpected(std::size_t unit, const Texts& texts) const {
    std::vector<std::size_t> unexpected;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const auto& expected = job_.units[unit].windows[i].expected;
      if (expected && texts[i] != *expected) unexpected.push_back(i);
    }
    return unexpected;
  }

  // Timing

  /// A B C, then C B A: whatever drifts while it goes on meets all alike.
  void TimeUnit(std::size_t round, std::size_t unit) {
    std::vector<std::size_t> entered = EnteredIn(unit);
    if ((unit + round) % 2 == 1) std::ranges::reverse(entered);
    for (const std::size_t number : entered) {
      Load(number);  // its engine may have lost its drafter to another
      if (withdrawn_[number]) continue;
      Cool();
      Doing("time", number, unit);
      const Moment before = machine_.Now();
      const Ran ran = Go(number, unit);
      const Moment after = machine_.Now();
      TellSample(number, unit, round, ran, before, after);
      if (ran.lost) Withdraw(number, *ran.lost);
    }
  }

  void TellSample(std::size_t number, std::size_t unit, std::size_t round, const Ran& ran,
                  const Moment& before, const Moment& after) {
    const Contender& contender = job_.contenders[number];
    const std::vector<std::size_t> differing = Differing(unit, ran.texts);
    if (contender.promised && !differing.empty()) as_promised_ = false;
    report_.Line("sample", [&](Json& json) {
      json.Field("contender", number)
          .Field("unit", unit)
          .Field("repeat", round)
          .Field("order", order_++);
      WriteCounters(json, *ran.run);
      json.Field("exact", contender.exact)
          .Field("texts", ran.texts)
          .Field("differs", !differing.empty())
          .Field("differing", differing)
          .Field("lost", ran.lost);
      WriteLanes(json, ran);
      json.Key("spans").BeginArray();
      for (const Span& span : job_.spans ? ran.spans : std::vector<Span>()) {
        json.BeginObject()
            .Field("lane", NameOf(span.lane))
            .Field("activity", NameOf(span.activity))
            .Field("window", span.window)
            .Field("begin", span.begin)
            .Field("end", span.end)
            .EndObject();
      }
      json.EndArray().Key("before");
      Write(json, before);
      json.Key("after");
      Write(json, after);
    });
  }

  void Cool() {
    if (job_.cool_celsius <= 0) return;
    constexpr std::chrono::milliseconds kLook(500);
    const auto begun = std::chrono::steady_clock::now();
    const auto waited = [&] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    };
    std::optional<double> hottest = machine_.Hottest();
    if (!hottest || *hottest <= job_.cool_celsius) return;
    while (hottest && *hottest > job_.cool_celsius && waited() < job_.cool_seconds) {
      stop_.Sleep(kLook);
      hottest = machine_.Hottest();
    }
    report_.Line("cooled",
                 [&](Json& json) { json.Field("waited", waited()).Field("celsius", hottest); });
  }

  // Drafts

  /// Of each drafter, on the units of all contenders that have it.
  void TellDrafts() {
    std::vector<std::vector<bool>> told(job_.drafters.size(), std::vector<bool>(job_.units.size()));
    for (std::size_t number = 0; number < job_.contenders.size(); ++number) {
      const Contender& contender = job_.contenders[number];
      if (!contender.drafter || withdrawn_[number]) continue;
      if (!NeedsDrafter(MethodOf(contender.method).value())) continue;
      for (std::size_t unit = 0; unit < job_.units.size(); ++unit) {
        if (told[*contender.drafter][unit] || !contender.TakesPartIn(unit)) continue;
        told[*contender.drafter][unit] = true;
        TellDraft(number, unit);
      }
    }
  }

  void TellDraft(std::size_t number, std::size_t unit) {
    Doing("draft", number, unit);
    Engine& engine = *Load(number).engine;
    for (const Window& window : clips_.WindowsOf(job_.units[unit])) {
      DraftTiming timing;
      {
        const Stop::Work work(stop_, [&engine] { engine.CancelTiming(); });
        timing = engine.TimeDraft(window, {});
      }
      report_.Line("draft", [&](Json& json) {
        json.Field("drafter", job_.contenders[number].drafter)
            .Field("unit", unit)
            .Field("window", window.index)
            .Field("tokens", timing.tokens);
      });
    }
  }

  const Job& job_;
  const Machine& machine_;
  Report& report_;
  Stop& stop_;
  Clips clips_;
  Seats seats_;
  std::vector<Texts> references_;  // by unit
  std::vector<bool> loaded_;       // by contender
  std::vector<bool> withdrawn_;    // likewise
  std::size_t order_ = 0;
  bool as_promised_ = true;
};

}  // namespace

bool RunBench(const Job& job, const Machine& machine, Report& report, Stop& stop) {
  return Bench(job, machine, report, stop).All();
}

}  // namespace as2d::runner
