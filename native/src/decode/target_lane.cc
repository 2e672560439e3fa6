#include "target_lane.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <iterator>
#include <span>
#include <utility>

#include "as2d/decode/verifier.h"
#include "as2d/error.h"

namespace as2d {
TargetDecoder::TargetDecoder(TargetModel& target, const Drafter* drafter,
                             std::vector<std::unique_ptr<Strategy>> strategies,
                             DraftChannel* channel, WindowList& windows, const RunOptions& options,
                             Counters& counters, EventQueue& events)
    : target_(target),
      drafter_(drafter),
      channel_(channel),
      windows_(windows),
      pad_(options.exact && target.even_rows_only()),
      batch_apart_(options.batch_apart),
      tell_encodings_(options.tell_encodings),
      counters_(counters),
      events_(events),
      activity_(LaneName::kTarget, events),
      meter_(options.costs, pad_),
      batch_(strategies.size()) {
  int slot = 0;
  for (Active& active : batch_) {
    active.strategy = std::move(strategies[static_cast<std::size_t>(slot)]);
    active.slot = slot++;
  }
  if (options.encode_ahead && slot < target.slots()) spare_slot_ = slot;
  if (options.adaptive && drafter != nullptr && channel == nullptr && !tell_encodings_) {
    gate_.emplace(meter_.costs_known());
    // The first forwards are slow, and the encoder may have heard the first window already.
    meter_.Mix();
  }
}

TargetDecoder::~TargetDecoder() { activity_.Set(Activity::kDone, -1); }

bool TargetDecoder::DecodeAll() {
  bool cancelled = false;
  for (bool more = true; more && !cancelled;) {
    try {
      more = false;
      for (Active& active : batch_) {
        while (!active.busy() && MayBegin() && Take(active)) {
          Begin(active);
          if (active.finished) Close(active);
        }
        more = more || active.busy();
      }
      if (more) {
        EncodeAhead();
        Step();
      }
    } catch (const Cancelled&) {
      cancelled = true;
    }
    for (Active& active : batch_) {
      if (active.task && (active.finished || cancelled)) Close(active);
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

// Puts the next window into a free place; false when there is none.
bool TargetDecoder::Take(Active& active) {
  // Only a lane with nothing to do waits for a window to come.
  const auto start = SpanMeter::Clock::now();
  active.task = ahead_ ? ahead_->task : windows_.NextForTarget(Idle());
  meter_.Waited(SpanMeter::Clock::now() - start);
  return active.busy();
}

void TargetDecoder::Begin(Active& active) {
  const Window& window = active.task->window;
  active.start = std::chrono::steady_clock::now();
  active.committed.clear();
  active.rules = target_.Rules(window);
  active.log_probability = active.no_speech = 0;
  active.times.clear();
  active.candidates = 0;
  active.drafting = false;
  active.finished = false;
  active.reason = FinishReason::kCancelled;
  // As many as alone steps could commit, so that no strategy gets further than another: the last
  // token is never fed back, and a padded step takes one more position than its tokens.
  const std::size_t context =
      static_cast<std::size_t>(target_.context()) - window.prompt.size() + (pad_ ? 0 : 1);
  active.limit = std::min(static_cast<std::size_t>(window.max_tokens), context);
  // A drafter with an encoder of its own runs it beside the target's.
  if (!windows_.tell_drafter()) BeginDraft(active);
  if (active.limit == 0) {
    ahead_.reset();
    return Finish(active, FinishReason::kLimit);
  }
  if (ahead_) {
    const Ahead ahead = *std::exchange(ahead_, std::nullopt);
    if (ahead.failure) std::rethrow_exception(ahead.failure);
    active.start -= ahead.time;
    std::swap(active.slot, *spare_slot_);
  } else {
    Encode(*active.task, active.slot);
  }
  if (windows_.tell_drafter()) BeginDraft(active);
  BeginText(active);
}

void TargetDecoder::BeginDraft(Active& active) {
  active.drafting = true;
  DraftSource source{.window = {active.task, &active.task->window}, .channel = channel_};
  if (channel_ != nullptr) {
    source.encoding = active.task->encoding;
  } else {
    source.stream = &active.task->stream;  // the encoding is the draft lane's by now
  }
  active.strategy->BeginWindow(source);
}

// Commits the first token.
void TargetDecoder::BeginText(Active& active) {
  const Window& window = active.task->window;
  activity_.Set(Activity::kPrompting, window.index);
  FirstToken first;
  {
    const PhaseTimer timer(counters_.nanoseconds.prompt);
    first = target_.Prompt(window.prompt, active.rules.Next(), active.slot);
  }
  meter_.Prompted(window.prompt.size());
  active.log_probability = first.log_probability;
  active.no_speech = first.no_speech;
  if (first.token == target_.end_token()) return Finish(active, FinishReason::kEnd);
  Commit(active, {first.token});
  if (active.limit == 1) Finish(active, FinishReason::kLimit);
}

void TargetDecoder::Encode(WindowTask& task, int slot) {
  activity_.Set(Activity::kEncoding, task.window.index);
  const auto start = SpanMeter::Clock::now();
  {
    const PhaseTimer timer(counters_.nanoseconds.encode);
    target_.Encode(task.window.samples, slot);
  }
  meter_.Encoded(task.window.samples.size(), SpanMeter::Clock::now() - start);
  if (windows_.tell_drafter() && !task.passed) windows_.TargetEncoded(task, target_.encoding());
  if (tell_encodings_) TellEncoding(task.window.index);
}

// Holds the windows in the batch up no more than one that joins them would.
void TargetDecoder::EncodeAhead() {
  if (!spare_slot_ || ahead_ || !MayBegin()) return;
  if (gate_ && !gate_->open()) return;  // it is for the drafter's sake alone
  Ahead ahead;
  ahead.task = windows_.NextForTarget(false);
  if (!ahead.task) return;
  const auto start = std::chrono::steady_clock::now();
  try {
    if (ahead.task->window.max_tokens > 0) Encode(*ahead.task, *spare_slot_);
  } catch (const Cancelled&) {
    throw;
  } catch (...) {
    ahead.failure = std::current_exception();
  }
  ahead.time = std::chrono::steady_clock::now() - start;
  for (Active& active : batch_) active.start += ahead.time;
  ahead_ = std::move(ahead);
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
  std::size_t windows = 0;
  for (Active& active : batch_) {
    if (!active.task) continue;
    ++windows;
    if (window < 0) window = active.task->window.index;
    if (gate_ && active.task->passed == gate_->open()) meter_.Mix();
    Propose(active);
    candidates += active.candidates;
    AddRows(active);
  }
  if (pad_ && rows_.size() % 2 != 0) {
    Row row = rows_.back();
    ++row.position;
    ++row.at;
    rows_.push_back(row);
  }
  next_.resize(rows_.size());
  log_probability_.resize(rows_.size());
  activity_.Set(candidates == 0 ? Activity::kAlone : Activity::kVerifying, window);
  {
    const PhaseTimer timer(counters_.nanoseconds.decode);
    target_.Forward(rows_, next_, log_probability_);
  }
  counters_.steps[std::min(candidates, kMaxCountedCandidates)].Add(1);
  counters_.proposed.Add(static_cast<std::int64_t>(candidates));
  std::size_t tokens = 0;
  for (Active& active : batch_) {
    if (active.task) tokens += Judge(active);
  }
  meter_.Stepped(windows, tokens);
}

// Asks the strategy for runs, and leaves of them what can be verified.
void TargetDecoder::Propose(Active& active) {
  // The last committed token is not in the caches yet: it is the first row.
  active.past = active.task->window.prompt.size() + active.committed.size() - 1;
  const std::size_t room = active.limit - active.committed.size();
  active.offered.Clear();
  active.echo = room > 2 ? active.rules.SegmentEnd() : Choice::kEnd;
  // A coupled lane waits for the other here, which is no work.
  if (channel_ != nullptr) activity_.Set(Activity::kIdle, active.task->window.index);
  if (batch_.size() > 1) {
    others_.clear();
    for (const Active& other : batch_) {
      if (other.busy() && &other != &active) others_.push_back(other.candidates);
    }
    active.strategy->Beside(others_);
  }
  // One of `room` is the target's own token.
  active.strategy->Propose(room - (active.echo == Choice::kEnd ? 1 : 2), &active.offered);
  // The row of the last committed token, and one to pad with.
  std::size_t free = static_cast<std::size_t>(target_.context()) - active.past - (pad_ ? 2 : 1);
  const std::size_t echo = active.echo == Choice::kEnd ? 0 : 1;
  active.candidates = 0;
  for (std::size_t i = 0; i < active.offered.size(); ++i) {
    std::span<const TokenId>& run = active.offered[i];
    const auto outside = std::find_if(run.begin(), run.end(), [&](TokenId token) {
      return token < 0 || token >= target_.vocabulary_size();
    });
    const std::size_t left = free > echo ? free - echo : 0;
    run = run.first(std::min(static_cast<std::size_t>(outside - run.begin()), left));
    if (run.empty()) continue;
    free -= echo + run.size();
    active.candidates += echo + run.size();
  }
  Echo(active);
}

// Drafts have no timestamps. Between two segments the target says two, and most often the same one
// twice: the step that begins with the first of them has a candidate for the other.
void TargetDecoder::Echo(Active& active) {
  active.runs = active.offered;
  if (active.echo == Choice::kEnd) return;
  for (std::size_t i = 0; i < active.runs.size(); ++i) {
    std::span<const TokenId>& run = active.runs[i];
    if (run.empty()) continue;
    std::vector<TokenId>& echoed = active.echoed[i];
    echoed.assign(1, active.echo);
    echoed.insert(echoed.end(), run.begin(), run.end());
    run = echoed;
  }
}

void TargetDecoder::AddRows(Active& active) {
  const int past = static_cast<int>(active.past);
  active.first_row = rows_.size();
  Row row{.token = active.committed.back(), .position = past, .slot = active.slot};
  row.at = past;
  row.choice = active.rules.Next();
  rows_.push_back(row);
  for (std::size_t run = 0; run < active.runs.size(); ++run) {
    if (run > 0) {
      row.shared = past + 1;
      row.begin = row.at + 1;
    }
    row.position = past;
    ChoiceRules rules = active.rules;  // if the candidates before are accepted
    for (const TokenId token : active.runs[run]) {
      rules.Push(token);
      row.choice = rules.Next();
      row.token = token;
      ++row.position;
      ++row.at;
      rows_.push_back(row);
    }
  }
}

// Commits what the step says of one window; returns how many tokens that is, the end counted.
std::size_t TargetDecoder::Judge(Active& active) {
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
    target_.Move(active.slot, rows_[best_row].at, place, static_cast<int>(verdict.accepted));
  }
  if (judged) {
    const std::size_t echo = active.echo != Choice::kEnd && verdict.accepted > 0 ? 1 : 0;
    active.strategy->Verified(active.offered, best, verdict.accepted - echo);
  }
  const bool ended = verdict.finished && verdict.reason == FinishReason::kEnd;
  const std::size_t said = verdict.committed + (ended ? 1 : 0);
  for (std::size_t i = 0; i < said; ++i) {
    active.log_probability += log_probability_[i == 0 ? active.first_row : best_row + i - 1];
  }
  if (!tokens.empty()) Commit(active, std::move(tokens));
  if (verdict.finished) Finish(active, verdict.reason);
  return said;
}

void TargetDecoder::Commit(Active& active, std::vector<TokenId> tokens) {
  active.committed.insert(active.committed.end(), tokens.begin(), tokens.end());
  counters_.committed.Add(static_cast<std::int64_t>(tokens.size()));
  std::vector<TokenId> text;  // a draft knows nothing of timestamps
  for (const TokenId token : tokens) {
    active.rules.Push(token);
    if (!active.rules.IsTimestamp(token)) text.push_back(token);
  }
  active.strategy->Committed(text);
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
  if (active.task->window.token_times) TellTimes(active);
}

void TargetDecoder::TellTimes(Active& active) {
  std::vector<TokenId> text;
  std::ranges::copy_if(active.committed, std::back_inserter(text),
                       [&](TokenId token) { return !active.rules.IsTimestamp(token); });
  if (text.empty()) return;
  const PhaseTimer timer(counters_.nanoseconds.decode);
  active.times = target_.TokenTimes(active.task->window, text, active.slot);
}

// Reports a window, finished or given up, and frees its place.
void TargetDecoder::Close(Active& active) {
  if (active.drafting) active.strategy->EndWindow();
  if (active.finished) counters_.windows.Add(1);
  Event event;
  event.kind = Event::Kind::kWindowFinished;
  event.window = active.task->window.index;
  event.tokens = active.committed;
  event.reason = active.reason;
  event.log_probability = active.log_probability;
  event.no_speech = active.no_speech;
  event.times = std::move(active.times);
  if (active.drafting && channel_ == nullptr) {
    const std::span<const TokenId> draft = active.task->stream.Read();
    const bool whole = !draft.empty() && draft.back() == target_.end_token();
    event.draft.assign(draft.begin(), draft.end() - (whole ? 1 : 0));
  }
  event.duration =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - active.start).count();
  events_.Push(std::move(event));
  windows_.TargetFinished(*active.task);
  const std::int64_t window = active.task->window.index;
  active.task = nullptr;
  if (gate_ && active.finished && !drafter_->lost) ReviewDrafting(window);
  if (Idle()) activity_.Set(Activity::kIdle, -1);
}

// At the end of a window.
void TargetDecoder::ReviewDrafting(std::int64_t window) {
  std::optional<std::string> decision = gate_->WindowFinished(meter_.End());
  if (decision) {
    windows_.LetDraft(gate_->open());
    Event event;
    event.kind = Event::Kind::kDraftingChanged;
    event.window = window;
    event.finished = gate_->open();
    event.message = *std::move(decision);
    events_.Push(std::move(event));
  }
  // The drafter may still be at a window that it took before.
  meter_.Begin(!gate_->open() && windows_.drafting());
}

void Run::TargetLane(const std::shared_ptr<State>& state) {
  std::string error;
  try {
    const auto& enter = state->options.enter_target_lane;
    const std::shared_ptr<void> inside = enter ? enter() : nullptr;
    TargetDecoder decoder(*state->target, state->drafter.get(), std::move(state->strategies),
                          state->channel.get(), state->windows, state->options, state->counters,
                          state->events);
    // However it came to be cancelled: a run that gives up a window must not look complete.
    if (!decoder.DecodeAll()) state->windows.Cancel();
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
