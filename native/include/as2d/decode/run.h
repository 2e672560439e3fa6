// One run: windows in, events out, two lanes between them.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "as2d/decode/models.h"
#include "as2d/decode/step_costs.h"
#include "as2d/decode/strategy.h"
#include "as2d/decode/window.h"
#include "as2d/text/retokenizer.h"
#include "as2d/trace/counters.h"
#include "as2d/trace/events.h"

namespace as2d {

/// A drafter and what is needed to speak to the target. Shared by the runs of one engine, one at a
/// time; kept alive by a draft lane that had to be left behind.
struct Drafter {
  std::shared_ptr<DraftModel> model;
  /// Turns draft tokens into target tokens; null when both have one vocabulary.
  std::function<std::unique_ptr<Retokenizer>()> make_retokenizer;
  /// The way back, for strategies that couple the lanes; null likewise.
  std::function<std::unique_ptr<Retokenizer>()> make_history_retokenizer;
  /// Set by the first failure: this drafter is not used again.
  std::atomic<bool> lost{false};
};

struct RunOptions {
  /// Commit exactly what the target alone would: pad steps where the target's numbers depend on
  /// the number of rows.
  bool exact = true;
  /// Windows that the target decodes in one batch, each with a strategy of its own; no more than
  /// the target has slots, and one where the lanes are coupled.
  std::size_t batch = 1;
  /// A window joins the batch once every window in it has so many tokens. The first words of a
  /// recording then do not wait for the encoding of all that the batch holds, and windows do not
  /// all end, and make the others wait for the next ones' encoding, at the same time.
  std::size_t batch_apart = 8;
  /// Encode the window after the ones in the batch, if it is there already, once each of those has
  /// `batch_apart` tokens: a drafter that needs the encoding then drafts it while the target
  /// decodes. Takes one more slot of the target; without it nothing is encoded ahead.
  bool encode_ahead = false;
  /// Tell what the encoder says of each window.
  bool tell_encodings = false;
  /// Adapt to what time shows: draft only while it pays (see DraftGate), with as many candidates as
  /// pay (see PayingBudget) where `costs` are known. What is committed is the same. No draft is
  /// dropped where the lanes are coupled, or where the encodings are told.
  bool adaptive = false;
  /// What the target costs on this machine, measured before.
  std::optional<StepCosts> costs;
  /// The drafter does as the strategy tells it, and nothing of its own.
  bool coupled = false;
  /// How long a coupled target waits for a reply before it gives the drafter up.
  std::chrono::duration<double> patience{30};
  /// The drafter may be this many windows ahead of the target's.
  std::int64_t max_lead_windows = 2;
  /// Draft tokens per window; a longer draft is cut.
  std::size_t stream_capacity = 1024;
  /// How long a cancelled or finished run waits for its draft lane before it leaves it behind.
  std::chrono::duration<double> draft_grace{0.5};
  /// Called first on each lane's thread, to name and pin it; what it returns lives as long as the
  /// lane and is destroyed on its thread. May be empty.
  std::function<std::shared_ptr<void>()> enter_target_lane;
  std::function<std::shared_ptr<void>()> enter_draft_lane;
  /// Let go just before kRunFinished: from then on another run may use the models. May be null.
  std::shared_ptr<void> lease;
};

/// Called once for each window of the batch.
using StrategyFactory = std::function<std::unique_ptr<Strategy>(Counters*)>;

/// Starts both lanes on construction. The lanes share the list of windows and the draft streams,
/// nothing else: neither touches the other's model. Methods may be called by any one thread at a
/// time, `Cancel` by any thread.
class Run {
 public:
  /// Without a drafter there is no draft lane. The models must not be used by another run before
  /// this one has told kRunFinished.
  Run(std::shared_ptr<TargetModel> target, std::shared_ptr<Drafter> drafter,
      const StrategyFactory& make_strategy, RunOptions options);

  /// Cancels what still goes on and joins the lanes. Blocks until the target's running step ends,
  /// and at most `draft_grace` longer.
  ~Run();

  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  /// Queues a window; never blocks. Throws Error when the request cannot be served (empty prompt,
  /// a prompt that leaves no room in the context, ids outside the vocabulary) or after Finish. Once
  /// the run is over, by Cancel or because the target failed, windows are dropped.
  void Submit(Window window);

  /// No more windows will come: the run ends when those queued are done.
  void Finish();

  /// Ends the run soon: windows not finished are given up with what they have committed. Does
  /// nothing to a run that is over, nor to a later one on the same models.
  void Cancel();

  /// Takes the events so far, waiting up to `timeout` for the first. The last event of a run is
  /// kRunFinished; it comes whatever happens.
  std::vector<Event> Poll(std::chrono::duration<double> timeout);

  const Counters& counters() const;
  /// Seconds since the run began; stands still once it has finished.
  double wall_seconds() const;

 private:
  struct State;
  static void TargetLane(const std::shared_ptr<State>& state);
  static void DraftLane(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;
  std::thread target_thread_;
  std::thread draft_thread_;
};

}  // namespace as2d
