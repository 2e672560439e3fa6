#include "target_lane.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include "as2d/decode/verifier.h"
#include "as2d/error.h"

namespace as2d {
TargetDecoder::TargetDecoder(TargetModel& target, std::vector<std::unique_ptr<Strategy>> strategies,
                             DraftChannel* channel, const RunOptions& options, Counters& counters,
                             EventQueue& events)
    : target_(target),
      channel_(channel),
      pad_(options.exact && target.even_rows_only()),
      batch_apart_(options.batch_apart),
      tell_encodings_(options.tell_encodings),
      counters_(counters),
      events_(events),
      activity_(LaneName::kTarget, events),
      batch_(strategies.size()) {
  for (std::size_t slot = 0; slot < batch_.size(); ++slot) {
    batch_[slot].strategy = std::move(strategies[slot]);
  }
}

TargetDecoder::~TargetDecoder() { activity_.Set(Activity::kDone, -1); }

bool TargetDecoder::DecodeAll(WindowList& windows) {
  bool cancelled = false;
  for (bool more = true; more && !cancelled;) {
    try {
      more = false;
      for (std::size_t slot = 0; slot < batch_.size(); ++slot) {
        Active& active = batch_[slot];
        while (!active.task && MayBegin()) {
          // Only a lane with nothing to do waits for a window to come.
          std::shared_ptr<WindowTask> task = windows.NextForTarget(Idle());
          if (!task) break;
          Begin(slot, std::move(task));
          if (active.finished) Close(active, windows);
        }
        more = more || active.busy();
      }
      if (more) Step();
    } catch (const Cancelled&) {
      cancelled = true;
    }
    for (Active& active : batch_) {
      if (active.task && (active.finished || cancelled)) Close(active, windows);
    }
  }
  return !cancelled;
}

bool TargetDecoder::MayBegin() const {
  return std::ranges::none_of(batch_, [&](const Active& active) {
    return active.busy() && active.committed.size() < batch_apart_;
  });
}

bool TargetDecoder::Idle() const { return std::ranges::none_of(batch_, &Active::busy); }

void TargetDecoder::Begin(std::size_t slot, std::shared_ptr<WindowTask> task) {
  Active& active = batch_[slot];
  active.task = std::move(task);
  active.start = std::chrono::steady_clock::now();
  active.committed.clear();
  active.finished = false;
  active.reason = FinishReason::kCancelled;
  const Window& window = active.task->window;
  // As many as alone steps could commit, so that no strategy gets further than another: the last
  // token is never fed back, and a padded step takes one more position than its tokens.
  const std::size_t context =
      static_cast<std::size_t>(target_.context()) - window.prompt.size() + (pad_ ? 0 : 1);
  active.limit = std::min(static_cast<std::size_t>(window.max_tokens), context);
  active.strategy->BeginWindow({.window = {active.task, &window},
                                .stream = channel_ ? nullptr : &active.task->stream,
                                .channel = channel_});
  BeginText(slot);
}

// Encodes, and commits the first token.
void TargetDecoder::BeginText(std::size_t slot) {
  Active& active = batch_[slot];
  const Window& window = active.task->window;
  if (active.limit == 0) return Finish(active, FinishReason::kLimit);
  activity_.Set(Activity::kEncoding, window.index);
  {
    const PhaseTimer timer(counters_.nanoseconds.encode);
    target_.Encode(window.samples, static_cast<int>(slot));
  }
  if (tell_encodings_) TellEncoding(window.index);
  activity_.Set(Activity::kPrompting, window.index);
  TokenId first = 0;
  {
    const PhaseTimer timer(counters_.nanoseconds.prompt);
    first = target_.Prompt(window.prompt, static_cast<int>(slot));
  }
  if (first == target_.end_token()) return Finish(active, FinishReason::kEnd);
  Commit(active, {first});
  if (active.limit == 1) Finish(active, FinishReason::kLimit);
}

void TargetDecoder::TellEncoding(std::int64_t window) {
  Event event;
  event.kind = Event::Kind::kEncoded;
  event.window = window;
  event.encoding.assign(target_.encoding().begin(), target_.encoding().end());
  event.count = static_cast<std::int64_t>(target_.encoding_width());
  events_.Push(std::move(event));
}

// One forward of the target for all windows of the batch.
void TargetDecoder::Step() {
  rows_.clear();
  std::size_t candidates = 0;
  std::int64_t window = -1;
  for (std::size_t slot = 0; slot < batch_.size(); ++slot) {
    Active& active = batch_[slot];
    if (!active.task) continue;
    if (window < 0) window = active.task->window.index;
    Propose(slot);
    candidates += active.candidates;
    AddRows(slot);
  }
  if (pad_ && rows_.size() % 2 != 0) {
    Row row = rows_.back();
    ++row.position;
    ++row.at;
    rows_.push_back(row);
  }
  next_.resize(rows_.size());
  activity_.Set(candidates == 0 ? Activity::kAlone : Activity::kVerifying, window);
  {
    const PhaseTimer timer(counters_.nanoseconds.decode);
    target_.Forward(rows_, next_);
  }
  counters_.steps[std::min(candidates, kMaxCountedCandidates)].Add(1);
  counters_.proposed.Add(static_cast<std::int64_t>(candidates));
  for (std::size_t slot = 0; slot < batch_.size(); ++slot) {
    if (batch_[slot].task) Judge(slot);
  }
}

// Asks the strategy for runs, and leaves of them what can be verified.
void TargetDecoder::Propose(std::size_t slot) {
  Active& active = batch_[slot];
  // The last committed token is not in the caches yet: it is the first row.
  active.past = active.task->window.prompt.size() + active.committed.size() - 1;
  const std::size_t room = active.limit - active.committed.size();
  active.runs.Clear();
  // A coupled lane waits for the other here, which is no work.
  if (channel_ != nullptr) activity_.Set(Activity::kIdle, active.task->window.index);
  // One of `room` is the target's own token.
  active.strategy->Propose(room - 1, &active.runs);
  // The row of the last committed token, and one to pad with.
  std::size_t free = static_cast<std::size_t>(target_.context()) - active.past - (pad_ ? 2 : 1);
  active.candidates = 0;
  for (std::size_t i = 0; i < active.runs.size(); ++i) {
    std::span<const TokenId>& run = active.runs[i];
    const auto outside = std::find_if(run.begin(), run.end(), [&](TokenId token) {
      return token < 0 || token >= target_.vocabulary_size();
    });
    run = run.first(std::min(static_cast<std::size_t>(outside - run.begin()), free));
    free -= run.size();
    active.candidates += run.size();
  }
}

void TargetDecoder::AddRows(std::size_t slot) {
  Active& active = batch_[slot];
  const int past = static_cast<int>(active.past);
  active.first_row = rows_.size();
  Row row{.token = active.committed.back(), .position = past, .slot = static_cast<int>(slot)};
  row.at = past;
  rows_.push_back(row);
  for (std::size_t run = 0; run < active.runs.size(); ++run) {
    if (run > 0) {
      row.shared = past + 1;
      row.begin = row.at + 1;
    }
    row.position = past;
    for (const TokenId token : active.runs[run]) {
      row.token = token;
      ++row.position;
      ++row.at;
      rows_.push_back(row);
    }
  }
}

// Commits what the step says of one window.
void TargetDecoder::Judge(std::size_t slot) {
  Active& active = batch_[slot];
  const std::size_t room = active.limit - active.committed.size();
  const TokenId end = target_.end_token();
  std::vector<TokenId> tokens;
  Verdict verdict;
  std::size_t best = 0;
  std::size_t best_row = active.first_row + 1;
  const auto next_of = [&](std::size_t first, std::size_t count) -> std::span<const TokenId> {
    run_next_.assign(1, next_[active.first_row]);
    const auto begin = next_.begin() + static_cast<std::ptrdiff_t>(first);
    run_next_.insert(run_next_.end(), begin, begin + static_cast<std::ptrdiff_t>(count));
    return run_next_;
  };
  std::size_t first = active.first_row + 1;
  bool judged = false;
  for (std::size_t run = 0; run < active.runs.size(); ++run) {
    const std::span<const TokenId> candidates = active.runs[run];
    if (candidates.empty()) continue;
    std::vector<TokenId> own;
    const Verdict found = Verify(candidates, next_of(first, candidates.size()), end, room, &own);
    if (!judged || found.accepted > verdict.accepted) {
      judged = true;
      verdict = found;
      best = run;
      best_row = first;
      tokens = std::move(own);
    }
    first += candidates.size();
  }
  if (!judged) verdict = Verify({}, next_of(first, 0), end, room, &tokens);
  counters_.accepted.Add(static_cast<std::int64_t>(verdict.accepted));
  const int place = static_cast<int>(active.past) + 1;
  if (verdict.accepted > 0 && rows_[best_row].at != place) {
    target_.Move(static_cast<int>(slot), rows_[best_row].at, place,
                 static_cast<int>(verdict.accepted));
  }
  if (judged) active.strategy->Verified(active.runs, best, verdict.accepted);
  if (!tokens.empty()) Commit(active, std::move(tokens));
  if (verdict.finished) Finish(active, verdict.reason);
}

void TargetDecoder::Commit(Active& active, std::vector<TokenId> tokens) {
  active.committed.insert(active.committed.end(), tokens.begin(), tokens.end());
  counters_.committed.Add(static_cast<std::int64_t>(tokens.size()));
  active.strategy->Committed(tokens);
  Event event;
  event.kind = Event::Kind::kTokensCommitted;
  event.window = active.task->window.index;
  event.tokens = std::move(tokens);
  events_.Push(std::move(event));
}

void TargetDecoder::Finish(Active& active, FinishReason reason) {
  active.finished = true;
  const auto wanted = static_cast<std::size_t>(active.task->window.max_tokens);
  active.reason =
      reason == FinishReason::kLimit && active.limit < wanted ? FinishReason::kContext : reason;
}

// Reports a window, finished or given up, and frees its slot.
void TargetDecoder::Close(Active& active, WindowList& windows) {
  active.strategy->EndWindow();
  if (active.finished) counters_.windows.Add(1);
  Event event;
  event.kind = Event::Kind::kWindowFinished;
  event.window = active.task->window.index;
  event.tokens = active.committed;
  event.reason = active.reason;
  event.duration =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - active.start).count();
  events_.Push(std::move(event));
  windows.TargetFinished(*active.task);
  active.task = nullptr;
  if (Idle()) activity_.Set(Activity::kIdle, -1);
}

void Run::TargetLane(const std::shared_ptr<State>& state) {
  std::string error;
  try {
    const auto& enter = state->options.enter_target_lane;
    const std::shared_ptr<void> inside = enter ? enter() : nullptr;
    TargetDecoder decoder(*state->target, std::move(state->strategies), state->channel.get(),
                          state->options, state->counters, state->events);
    // However it came to be cancelled: a run that gives up a window must not look complete.
    if (!decoder.DecodeAll(state->windows)) state->windows.Cancel();
  } catch (const std::exception& failure) {
    error = CauseOf(failure);
  } catch (...) {
    error = "the target failed without saying why";
  }
  const bool cancelled = state->windows.cancelled();
  state->windows.Cancel();  // whatever the drafter still does has no more use
  if (state->drafter) {
    if (state->channel) state->channel->Close();
    state->drafter->model->Cancel();
    const bool hangs = !state->WaitForDraftLane();
    if (hangs || (state->channel && state->channel->timed_out())) {
      state->LoseDrafter("the drafter does not answer");
    }
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
