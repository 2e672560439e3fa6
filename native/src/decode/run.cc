#include "as2d/decode/run.h"

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

#include "as2d/error.h"
#include "lane.h"
#include "run_state.h"

namespace as2d {

bool Run::State::WaitForDraftLane() {
  std::unique_lock lock(mutex_);
  return draft_lane_ended_.wait_for(lock, options.draft_grace, [this] { return draft_lane_done_; });
}

bool Run::State::draft_lane_done() {
  const std::lock_guard lock(mutex_);
  return draft_lane_done_;
}

void Run::State::DraftLaneDone() {
  if (channel) channel->Close();  // nobody waits for a reply any more
  const std::lock_guard lock(mutex_);
  draft_lane_done_ = true;
  draft_lane_ended_.notify_all();
}

void Run::State::LoseDrafter(std::string cause) {
  if (drafter->lost.exchange(true)) return;
  Event event;
  event.kind = Event::Kind::kDrafterLost;
  event.message = std::move(cause);
  events.Push(std::move(event));
}

void Run::State::CancelModels() {
  const std::lock_guard lock(models_mutex_);
  if (models_released_) return;
  target->Cancel();
  if (channel) channel->Close();
  if (drafter) drafter->model->Cancel();
}

void Run::State::ReleaseModels() {
  const std::lock_guard lock(models_mutex_);
  models_released_ = true;
  lease.reset();
}

Run::Run(std::shared_ptr<TargetModel> target, std::shared_ptr<Drafter> drafter,
         const StrategyFactory& make_strategy, RunOptions options)
    : state_(std::make_shared<State>(std::move(target), std::move(drafter), std::move(options))) {
  // Several strategies would take each other's replies.
  const std::size_t most =
      state_->options.coupled ? 1 : static_cast<std::size_t>(state_->target->slots());
  const std::size_t batch = std::clamp<std::size_t>(state_->options.batch, 1, most);
  for (std::size_t i = 0; i < batch; ++i) {
    state_->strategies.push_back(make_strategy(&state_->counters));
  }
  state_->target->ClearCancel();
  if (state_->drafter) state_->drafter->model->ClearCancel();
  // The lanes hold the state themselves: one that is left behind must not lose it.
  target_thread_ = std::thread([state = state_] { TargetLane(state); });
  if (!state_->drafter) return;
  try {
    draft_thread_ = std::thread([state = state_] { DraftLane(state); });
  } catch (const std::system_error& failure) {
    state_->LoseDrafter(CauseOf(failure));
    state_->DraftLaneDone();
  }
}

Run::~Run() {
  Cancel();
  target_thread_.join();
  if (!draft_thread_.joinable()) return;
  if (state_->draft_lane_done()) {
    draft_thread_.join();
  } else {
    // The target lane has waited for it: it hangs in the drafter's code. The run is over for
    // everybody else; the thread keeps what it uses alive.
    draft_thread_.detach();
  }
}

void Run::Submit(Window window) {
  const TargetModel& target = *state_->target;
  if (window.prompt.empty()) throw Error("a window needs a prompt of at least one token");
  if (window.prompt.size() + 2 > static_cast<std::size_t>(target.context())) {
    throw Error("the prompt of " + std::to_string(window.prompt.size()) +
                " tokens leaves no room in the target's context of " +
                std::to_string(target.context()) + "; shorten it");
  }
  for (const TokenId token : window.prompt) {
    if (token < 0 || token >= target.vocabulary_size()) {
      throw Error("token " + std::to_string(token) + " of the prompt is not in the vocabulary");
    }
  }
  if (window.max_tokens < 0) throw Error("max_tokens cannot be negative");
  auto task = std::make_shared<WindowTask>(std::move(window), state_->options.stream_capacity);
  if (!state_->windows.Add(std::move(task))) throw Error("the run takes no more windows");
}

void Run::Finish() { state_->windows.Close(); }

void Run::Cancel() {
  state_->windows.Cancel();
  state_->CancelModels();
}

std::vector<Event> Run::Poll(std::chrono::duration<double> timeout) {
  return state_->events.Take(timeout);
}

const Counters& Run::counters() const { return state_->counters; }

double Run::wall_seconds() const {
  const double finished = state_->wall_seconds.load();
  return finished >= 0 ? finished : state_->events.SecondsSinceStart();
}

}  // namespace as2d
