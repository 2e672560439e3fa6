#include "target_lane.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include "as2d/decode/verifier.h"
#include "as2d/error.h"

namespace as2d {

TargetDecoder::TargetDecoder(TargetModel& target, Strategy& strategy, bool exact,
                             Counters& counters, EventQueue& events)
    : target_(target),
      strategy_(strategy),
      pad_(exact && target.even_rows_only()),
      counters_(counters),
      events_(events),
      activity_(LaneName::kTarget, events) {}

TargetDecoder::~TargetDecoder() { activity_.Set(Activity::kDone, -1); }

bool TargetDecoder::DecodeWindow(WindowTask& task) {
  const auto start = std::chrono::steady_clock::now();
  committed_.clear();
  FinishReason reason = FinishReason::kCancelled;
  strategy_.BeginWindow(&task.stream);
  try {
    reason = Decode(task.window);
  } catch (const Cancelled&) {
  }
  strategy_.EndWindow();
  const bool complete = reason != FinishReason::kCancelled;
  if (complete) counters_.windows.Add(1);
  Event event;
  event.kind = Event::Kind::kWindowFinished;
  event.window = task.window.index;
  event.tokens = committed_;
  event.reason = reason;
  event.duration = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  events_.Push(std::move(event));
  activity_.Set(Activity::kIdle, -1);
  return complete;
}

FinishReason TargetDecoder::Decode(const Window& window) {
  // As many as alone steps could commit, so that no strategy gets further than another: the last
  // token is never fed back, and a padded step takes one more position than its tokens.
  const std::size_t context =
      static_cast<std::size_t>(target_.context()) - window.prompt.size() + (pad_ ? 0 : 1);
  limit_ = std::min(static_cast<std::size_t>(window.max_tokens), context);
  const FinishReason reason = DecodeUpToLimit(window);
  return reason == FinishReason::kLimit && limit_ < static_cast<std::size_t>(window.max_tokens)
             ? FinishReason::kContext
             : reason;
}

FinishReason TargetDecoder::DecodeUpToLimit(const Window& window) {
  if (limit_ == 0) return FinishReason::kLimit;
  activity_.Set(Activity::kEncoding, window.index);
  {
    const PhaseTimer timer(counters_.nanoseconds.encode);
    target_.Encode(window.samples);
  }
  activity_.Set(Activity::kPrompting, window.index);
  TokenId first = 0;
  {
    const PhaseTimer timer(counters_.nanoseconds.prompt);
    first = target_.Prompt(window.prompt);
  }
  if (first == target_.end_token()) return FinishReason::kEnd;
  Commit(window, {first});
  if (limit_ == 1) return FinishReason::kLimit;
  FinishReason reason{};
  while (!Step(window, &reason)) {
  }
  return reason;
}

// One forward of the target; true when the window is finished.
bool TargetDecoder::Step(const Window& window, FinishReason* reason) {
  // The last committed token is not in the caches yet: it is the first row.
  const std::size_t past = window.prompt.size() + committed_.size() - 1;
  const std::size_t room = limit_ - committed_.size();
  // One of `room` is the target's own token.
  std::span<const TokenId> candidates = strategy_.Candidates(room - 1);
  const auto outside = std::find_if(candidates.begin(), candidates.end(), [&](TokenId token) {
    return token < 0 || token >= target_.vocabulary_size();
  });
  candidates = candidates.first(static_cast<std::size_t>(outside - candidates.begin()));

  rows_.assign(1, committed_.back());
  rows_.insert(rows_.end(), candidates.begin(), candidates.end());
  if (pad_ && rows_.size() % 2 != 0) rows_.push_back(rows_.back());
  next_.resize(rows_.size());
  activity_.Set(candidates.empty() ? Activity::kAlone : Activity::kVerifying, window.index);
  {
    const PhaseTimer timer(counters_.nanoseconds.decode);
    target_.Forward(rows_, static_cast<int>(past), next_);
  }

  std::vector<TokenId> tokens;
  const Verdict verdict = Verify(candidates, next_, target_.end_token(), room, &tokens);
  counters_.steps[std::min(candidates.size(), kMaxCountedCandidates)].Add(1);
  counters_.proposed.Add(static_cast<std::int64_t>(candidates.size()));
  counters_.accepted.Add(static_cast<std::int64_t>(verdict.accepted));
  if (!candidates.empty()) strategy_.Verified(candidates.size(), verdict.accepted);
  if (!tokens.empty()) Commit(window, std::move(tokens));
  *reason = verdict.reason;
  return verdict.finished;
}

void TargetDecoder::Commit(const Window& window, std::vector<TokenId> tokens) {
  committed_.insert(committed_.end(), tokens.begin(), tokens.end());
  counters_.committed.Add(static_cast<std::int64_t>(tokens.size()));
  strategy_.Committed(tokens);
  Event event;
  event.kind = Event::Kind::kTokensCommitted;
  event.window = window.index;
  event.tokens = std::move(tokens);
  events_.Push(std::move(event));
}

void Run::TargetLane(const std::shared_ptr<State>& state) {
  std::string error;
  try {
    const auto& enter = state->options.enter_target_lane;
    const std::shared_ptr<void> inside = enter ? enter() : nullptr;
    TargetDecoder decoder(*state->target, *state->strategy, state->options.exact, state->counters,
                          state->events);
    while (const std::shared_ptr<WindowTask> task = state->windows.NextForTarget()) {
      // However it came to be cancelled: a run that gives up a window must not look complete.
      if (!decoder.DecodeWindow(*task)) state->windows.Cancel();
      state->windows.TargetFinished(*task);
    }
  } catch (const std::exception& failure) {
    error = CauseOf(failure);
  } catch (...) {
    error = "the target failed without saying why";
  }
  const bool cancelled = state->windows.cancelled();
  state->windows.Cancel();  // whatever the drafter still does has no more use
  if (state->drafter) {
    state->drafter->model->Cancel();
    if (!state->WaitForDraftLane()) state->LoseDrafter("the drafter does not answer");
  }
  state->ReleaseModels();
  state->wall_seconds.store(state->events.SecondsSinceStart());
  Event event;
  event.kind = Event::Kind::kRunFinished;
  event.finished = !cancelled;
  event.message = std::move(error);
  state->events.Push(std::move(event));
}

}  // namespace as2d
