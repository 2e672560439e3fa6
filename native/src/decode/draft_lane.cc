#include <string>
#include <utility>
#include <vector>

#include "as2d/error.h"
#include "lane.h"
#include "run_state.h"

namespace as2d {
namespace {

/// Drafts windows one after the other; knows nothing of what the target makes of it.
class DraftWorker {
 public:
  DraftWorker(DraftModel& model, std::unique_ptr<Retokenizer> retokenizer, TokenId target_end,
              Counters& counters, EventQueue& events)
      : model_(model),
        retokenizer_(std::move(retokenizer)),
        target_end_(target_end),
        counters_(counters),
        events_(events),
        activity_(LaneName::kDraft, events) {}

  ~DraftWorker() { activity_.Set(Activity::kDone, -1); }

  /// Drafts until the draft is complete, the stream full, or the window used up.
  void Draft(WindowTask& task, const WindowList& windows) {
    const std::int64_t index = task.window.index;
    activity_.Set(Activity::kEncoding, index);
    model_.Begin(task.window);
    if (retokenizer_) retokenizer_->Reset();
    std::int64_t published = 0;
    for (bool more = true; more && !windows.cancelled() && !task.finished;) {
      draft_.clear();
      more = Work();
      activity_.Set(model_.encoding() ? Activity::kEncoding : Activity::kDrafting, index);
      if (task.finished) break;
      ready_.clear();
      Translate(more);
      // The drafter's end is a proposal like any other: in the target's words it is its end token.
      if (!more) ready_.push_back(target_end_);
      if (ready_.empty()) continue;
      const bool room = task.stream.Append(ready_);
      const auto before =
          std::exchange(published, static_cast<std::int64_t>(task.stream.Read().size()));
      counters_.drafted.Add(published - before);
      more = more && room;
      Report(index, published, !more);
    }
    activity_.Set(Activity::kIdle, -1);
  }

 private:
  bool Work() {
    const auto start = std::chrono::steady_clock::now();
    const bool more = model_.Next(&draft_);
    PhaseTimes& times = counters_.nanoseconds;
    (model_.encoding() ? times.draft_encode : times.draft_decode)
        .Add((std::chrono::steady_clock::now() - start).count());
    return more;
  }

  void Translate(bool more) {
    if (!retokenizer_) {
      ready_ = draft_;
      return;
    }
    for (const TokenId token : draft_) retokenizer_->Push(token, &ready_);
    if (!more) retokenizer_->Finish(&ready_);
  }

  void Report(std::int64_t window, std::int64_t published, bool finished) {
    Event event;
    event.kind = Event::Kind::kDraftAdvanced;
    event.window = window;
    event.count = published;
    event.finished = finished;
    events_.Push(std::move(event));
  }

  DraftModel& model_;
  const std::unique_ptr<Retokenizer> retokenizer_;
  const TokenId target_end_;
  Counters& counters_;
  EventQueue& events_;
  ActivityReporter activity_;
  std::vector<TokenId> draft_;  // the drafter's tokens of one piece of work
  std::vector<TokenId> ready_;  // the same as target tokens
};

}  // namespace

void Run::DraftLane(const std::shared_ptr<State>& state) {
  Drafter& drafter = *state->drafter;
  std::string cause;
  try {
    const auto& enter = state->options.enter_draft_lane;
    const std::shared_ptr<void> inside = enter ? enter() : nullptr;
    DraftWorker worker(*drafter.model,
                       drafter.make_retokenizer ? drafter.make_retokenizer() : nullptr,
                       state->target->end_token(), state->counters, state->events);
    while (const std::shared_ptr<WindowTask> task = state->windows.NextForDrafter()) {
      worker.Draft(*task, state->windows);
    }
  } catch (const Cancelled&) {
  } catch (const std::exception& failure) {
    cause = CauseOf(failure);
  } catch (...) {
    cause = "the drafter failed without saying why";
  }
  if (!cause.empty()) state->LoseDrafter(std::move(cause));
  state->DraftLaneDone();
}

}  // namespace as2d
