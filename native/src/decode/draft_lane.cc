#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "as2d/error.h"
#include "lane.h"
#include "run_state.h"

namespace as2d {
namespace {

/// A drafter at work: its tokens as the target's, its time counted, its activity told.
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

  void Begin(const Window& window, std::span<const float> encoding) {
    window_ = window.index;
    model_.Begin(window, encoding);
    BeginText();
  }

  /// What comes does not continue what came.
  void BeginText() {
    if (retokenizer_) retokenizer_->Reset();
  }

  /// Does one piece of work. `drafted` has the drafter's own tokens of it, `ready` what became
  /// complete as the target's: its end too, which is a proposal like any other.
  bool Next() {
    drafted.clear();
    ready.clear();
    const bool encoding = model_.encoding();
    activity_.Set(encoding ? Activity::kEncoding : Activity::kDrafting, window_);
    bool more = false;
    {
      PhaseTimes& times = counters_.nanoseconds;
      const PhaseTimer timer(encoding ? times.draft_encode : times.draft_decode);
      more = model_.Next(&drafted);
    }
    if (retokenizer_) {
      for (const TokenId token : drafted) retokenizer_->Push(token, &ready);
      if (!more) retokenizer_->Finish(&ready);
    } else {
      ready = drafted;
    }
    if (!more) ready.push_back(target_end_);
    return more;
  }

  /// What is not a complete word yet, as the target's tokens.
  void Flush(std::vector<TokenId>* tokens) {
    if (retokenizer_) retokenizer_->Finish(tokens);
  }

  void Rest() { activity_.Set(Activity::kIdle, -1); }

  /// `tokens` more are published, `published` in all of the window.
  void Report(std::int64_t tokens, std::int64_t published, bool finished) {
    counters_.drafted.Add(tokens);
    Event event;
    event.kind = Event::Kind::kDraftAdvanced;
    event.window = window_;
    event.count = published;
    event.finished = finished;
    events_.Push(std::move(event));
  }

  DraftModel& model() { return model_; }

  std::vector<TokenId> drafted;
  std::vector<TokenId> ready;

 private:
  DraftModel& model_;
  const std::unique_ptr<Retokenizer> retokenizer_;
  const TokenId target_end_;
  Counters& counters_;
  EventQueue& events_;
  ActivityReporter activity_;
  std::int64_t window_ = -1;
};

/// Drafts windows one after the other; knows nothing of what the target makes of it.
void DraftFreely(DraftWorker& worker, WindowList& windows) {
  while (const std::shared_ptr<WindowTask> task = windows.NextForDrafter()) {
    worker.Begin(task->window, task->encoding);
    std::int64_t published = 0;
    // Until the draft is complete, the stream full, or the window used up.
    for (bool more = true; more && !windows.cancelled() && !task->finished;) {
      more = worker.Next();
      if (task->finished) break;
      if (worker.ready.empty()) continue;
      more = task->stream.Append(worker.ready) && more;
      const auto before =
          std::exchange(published, static_cast<std::int64_t>(task->stream.Read().size()));
      worker.Report(published - before, published, !more);
    }
    worker.Rest();
  }
}

/// Drafts what the strategy asks for.
class DraftServer {
 public:
  DraftServer(DraftWorker& worker, std::unique_ptr<Retokenizer> history)
      : worker_(worker), history_(std::move(history)) {}

  void Serve(DraftChannel& channel) {
    while (const std::optional<DraftRequest> request = channel.Next()) {
      DraftReply reply;
      if (request->window != window_) {
        window_ = request->window;
        worker_.Begin(*window_, request->encoding);
      }
      std::int64_t told = 0;
      if (request->tell) {
        told = Tell(*request, channel);
      } else if (request->count > 0) {
        Continue(*request, &reply.tokens);
      } else if (worker_.model().encoding()) {
        worker_.Next();
      }
      worker_.Rest();
      const auto count = told + static_cast<std::int64_t>(reply.tokens.size());
      worker_.Report(count, static_cast<std::int64_t>(request->history.size()) + count, false);
      channel.Answer(std::move(reply));
    }
  }

 private:
  void Continue(const DraftRequest& request, std::vector<TokenId>* tokens) {
    worker_.model().Follow(OwnTokens(request.history));
    worker_.BeginText();
    double confidence = 1;
    std::size_t drafted = 0;
    // A word that is not complete counts by the drafter's tokens: to wait for its end would cost a
    // step for nothing.
    bool more = true;
    while (more && drafted < request.count) {
      more = worker_.Next();
      drafted += worker_.drafted.size();
      tokens->insert(tokens->end(), worker_.ready.begin(), worker_.ready.end());
      if (request.least_confidence <= 0 || worker_.drafted.empty()) continue;
      confidence *= worker_.model().confidence();
      if (confidence < request.least_confidence) break;
    }
    if (more) worker_.Flush(tokens);
    if (tokens->size() > request.count) tokens->resize(request.count);
  }

  /// Returns how many tokens were told.
  std::int64_t Tell(const DraftRequest& request, DraftChannel& channel) {
    worker_.model().Follow(OwnTokens(request.history));
    worker_.BeginText();
    std::size_t told = 0;
    for (bool more = true; more && told < request.count;) {
      more = worker_.Next();
      if (!channel.Tell(worker_.ready)) break;
      told += worker_.ready.size();
    }
    return static_cast<std::int64_t>(told);
  }

  std::span<const TokenId> OwnTokens(const std::vector<TokenId>& history) {
    if (!history_) return history;
    own_.clear();
    history_->Reset();
    for (const TokenId token : history) history_->Push(token, &own_);
    history_->Finish(&own_);
    return own_;
  }

  DraftWorker& worker_;
  const std::unique_ptr<Retokenizer> history_;
  std::shared_ptr<const Window> window_;
  std::vector<TokenId> own_;
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
    if (state->channel) {
      DraftServer(worker,
                  drafter.make_history_retokenizer ? drafter.make_history_retokenizer() : nullptr)
          .Serve(*state->channel);
    } else {
      DraftFreely(worker, state->windows);
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
