// The engine's own models, measured on their lanes.
#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <optional>
#include <thread>
#include <utility>

#include "as2d/engine.h"
#include "as2d/error.h"

namespace as2d {
namespace {

Deadline After(double seconds) {
  // More than anybody waits for, and far from what a clock can hold.
  constexpr double kMost = 86400;
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<std::chrono::steady_clock::duration>(
             std::chrono::duration<double>(std::clamp(seconds, 0.0, kMost)));
}

constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

bool IsPast(Deadline deadline) { return std::chrono::steady_clock::now() >= deadline; }

}  // namespace

/// While it lives a measurement goes on, which CancelTiming ends.
class Engine::Timing {
 public:
  explicit Timing(Engine& engine) : engine_(engine) {
    engine.RequireIdle();
    const std::lock_guard lock(engine.timing_mutex_);
    if (engine.timing_cancelled_) throw Cancelled("measuring");
    engine.target_->ClearCancel();
    if (engine.drafter_) engine.drafter_->model->ClearCancel();
    engine.timing_ = true;
  }
  ~Timing() {
    const std::lock_guard lock(engine_.timing_mutex_);
    engine_.timing_ = false;
  }
  Timing(const Timing&) = delete;
  Timing& operator=(const Timing&) = delete;

 private:
  Engine& engine_;
};

void Engine::CancelTiming() {
  const std::lock_guard lock(timing_mutex_);
  timing_cancelled_ = true;
  if (!timing_) return;
  target_->Cancel();
  if (drafter_) drafter_->model->Cancel();
}

/// The lane's cores stay its own for as long as this lives.
std::shared_ptr<void> Engine::Keep(const std::shared_ptr<Lane>& lane, bool lend) {
  if (lend || !lane || !lane->crew) return nullptr;
  return std::make_shared<CrewLane::Kept>(lane->crew);
}

std::shared_ptr<void> Engine::EnterNow(const std::shared_ptr<Lane>& lane) {
  const std::function<std::shared_ptr<void>()> enter = Enter(lane);
  return enter ? enter() : nullptr;
}

Drafter& Engine::RequireDrafter() const {
  if (!has_drafter()) throw Error("there is no drafter to measure");
  return *drafter_;
}

std::vector<double> Engine::TimeEncode(double seconds_of_audio, std::size_t repeats,
                                       const TimingOptions& options) {
  const Timing timing(*this);
  const std::shared_ptr<void> kept = Keep(draft_lane_, options.lend);
  const std::shared_ptr<void> inside = EnterNow(target_lane_);
  return as2d::TimeEncode(*target_, seconds_of_audio, repeats, After(options.most_seconds));
}

/// What the target is to hear before its steps are timed: a prompt of one that hears for itself
/// would have to keep places for it, and costs the same without.
std::span<const float> Engine::HeardBefore(std::span<const float> samples) const {
  return audio_llm_ ? std::span<const float>() : samples;
}

std::vector<std::vector<double>> Engine::TimeSteps(std::span<const int> rows, std::size_t repeats,
                                                   const TimingOptions& options) {
  const Timing timing(*this);
  const std::shared_ptr<void> kept = Keep(draft_lane_, options.lend);
  const std::shared_ptr<void> inside = EnterNow(target_lane_);
  return StepTimer(*target_, HeardBefore(Noise(1)), options.exact)
      .Time(rows, repeats, After(options.most_seconds));
}

/// For a drafter that hears through the target: what that says of the window.
std::span<const float> Engine::EncodingFor(const Drafter& drafter, const Window& window) {
  if (!drafter.model->needs_encoding()) return {};
  const std::shared_ptr<void> inside = EnterNow(target_lane_);
  target_->Encode(window.samples, 0);
  return target_->encoding();
}

namespace {

/// A drafter with what it takes to count its tokens as the target's.
class DraftTimer {
 public:
  DraftTimer(Drafter& drafter, const Window& window, std::span<const float> encoding)
      : model_(*drafter.model),
        window_(window),
        encoding_(encoding),
        retokenizer_(drafter.make_retokenizer ? drafter.make_retokenizer() : nullptr) {}

  /// The first forwards of a model are slow.
  void WarmUp() {
    Time([] { return true; });
  }

  DraftTiming Time(const std::function<bool()>& stop) {
    return TimeDraft(model_, window_, encoding_, retokenizer_.get(), stop);
  }

 private:
  DraftModel& model_;
  const Window& window_;
  const std::span<const float> encoding_;
  const std::unique_ptr<Retokenizer> retokenizer_;
};

}  // namespace

DraftTiming Engine::TimeDraft(const Window& window, const TimingOptions& options) {
  Drafter& drafter = RequireDrafter();
  const Timing timing(*this);
  const std::span<const float> encoding = EncodingFor(drafter, window);
  const std::shared_ptr<void> kept = Keep(target_lane_, options.lend);
  const std::shared_ptr<void> inside = EnterNow(draft_lane_);
  DraftTimer timer(drafter, window, encoding);
  timer.WarmUp();
  const Deadline deadline = After(options.most_seconds);
  return timer.Time([&] { return IsPast(deadline); });
}

TogetherTiming Engine::TimeTogether(std::span<const int> rows, double seconds, const Window& window,
                                    bool exact) {
  Drafter& drafter = RequireDrafter();
  const Timing timing(*this);
  const std::shared_ptr<void> inside = EnterNow(target_lane_);
  StepTimer steps(*target_, HeardBefore(window.samples), exact);
  steps.Time(rows, 1, After(0));
  const std::span<const float> encoding =
      drafter.model->needs_encoding() ? target_->encoding() : std::span<const float>();
  TogetherTiming result;
  std::atomic<bool> stop{false};
  std::exception_ptr failure;
  std::thread draft_lane([&] {
    try {
      const std::shared_ptr<void> drafting = EnterNow(draft_lane_);
      DraftTimer timer(drafter, window, encoding);
      do {
        result.drafts.push_back(timer.Time([&] { return stop.load(); }));
      } while (!stop);
    } catch (...) {
      failure = std::current_exception();
    }
  });
  try {
    result.steps = steps.Time(rows, kNoLimit, After(seconds));
  } catch (...) {
    stop = true;
    draft_lane.join();
    throw;
  }
  stop = true;
  draft_lane.join();
  if (failure) std::rethrow_exception(failure);
  return result;
}

}  // namespace as2d
