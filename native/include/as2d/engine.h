// The engine: models on lanes, ready to run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "as2d/decode/budget.h"
#include "as2d/decode/run.h"
#include "as2d/decode/scripted.h"
#include "as2d/models/audio_llm.h"
#include "as2d/models/llama.h"
#include "as2d/models/whisper.h"
#include "as2d/platform/crew.h"
#include "as2d/platform/worker_pool.h"
#include "as2d/profile/timing.h"
#include "as2d/runtime/ort.h"
#include "as2d/text/token_keys.h"

namespace as2d {

/// Which cores a lane gets: the calling thread of the lane on the first, a worker on each other.
struct LaneCores {
  std::vector<int> cores;  ///< pinned to these, one thread each; empty: `threads` unpinned ones
  int threads = 1;
};

/// A lane as it was when its last run began; before the first, its helpers.
struct LaneReport {
  std::vector<int> cores;
  std::vector<WorkerReport> threads;
};

/// Where candidates come from: see the strategy of the same name.
enum class Method : std::uint8_t {
  kTarget,
  kAs2d,      ///< DecoupledDrafting
  kCoupled,   ///< CoupledDrafting
  kAdaptive,  ///< CoupledDrafting that stops by confidence
  kPearl,
  kMulti,
  kLookup,
  kBatched,  ///< the target alone on several windows at a time
  kAnchored,
};

/// "as2d" and so on; empty for one that there is none of.
std::optional<Method> MethodOf(std::string_view name);
bool NeedsDrafter(Method method);

/// How models are measured.
struct TimingOptions {
  /// A step of an odd number of rows is padded where a run in exact mode would pad it.
  bool exact = true;
  /// The cores of the lane that is not measured help, as they do while it rests.
  bool lend = true;
  /// No more samples are taken after this time, but one of each kind in any case.
  double most_seconds = 30;
};

/// What two lanes cost that work at the same time.
struct TogetherTiming {
  std::vector<std::vector<double>> steps;  ///< seconds of the target's forwards, by number of rows
  std::vector<DraftTiming> drafts;  ///< one after the other; the last one was perhaps stopped
};

/// One target and at most one drafter, loaded once and run any number of times, one run at a time.
/// Methods may be called by one thread at a time.
class Engine {
 public:
  /// Loads the target's bundle. Throws Error, naming the file.
  Engine(const std::filesystem::path& ort_library, const std::filesystem::path& target,
         const LaneCores& target_lane);
  /// A target that follows a script.
  Engine(Script script, ScriptedTarget::Options options);

  /// Loads a drafter's bundle; it replaces the one before. Throws Error, naming the file, also for
  /// a head of another target; the engine then has no drafter.
  void LoadDrafter(const std::filesystem::path& drafter, const LaneCores& draft_lane);
  /// A drafter that follows a script in the target's vocabulary.
  void SetDrafter(std::shared_ptr<ScriptedDrafter> drafter);

  /// Starts a run. `budget` is the most candidates of a run in one verify step; for kBatched it is
  /// the number of windows in a batch, which is `options.batch` for the others whose lanes are not
  /// coupled; at most 16. Without a usable drafter the target goes alone where the
  /// method needs one. Throws Error for kMulti with a target whose caches hold one run, and
  /// while the run before is not over: it is once it has told
  /// kRunFinished or is destroyed. Throws std::bad_alloc without memory for the windows of a batch.
  std::unique_ptr<Run> Start(Method method, std::size_t budget, RunOptions options);

  /// Probability of each language that the target knows, for at most one window of 16 kHz mono.
  /// Blocks for one encoder pass. Throws Error for a target of one language, or while a run is not
  /// over.
  std::vector<std::pair<std::string, float>> LanguageProbabilities(std::span<const float> samples);

  /// Measuring: see profile/timing.h. Each blocks, on the lane's cores. They throw Error while a
  /// run is not over, or without the drafter they measure, and Cancelled after CancelTiming.
  std::vector<double> TimeEncode(double seconds_of_audio, std::size_t repeats,
                                 const TimingOptions& options);
  std::vector<std::vector<double>> TimeSteps(std::span<const int> rows, std::size_t repeats,
                                             const TimingOptions& options);
  DraftTiming TimeDraft(const Window& window, const TimingOptions& options);
  /// Times the target's steps for so many seconds, while the drafter drafts the window over and
  /// over.
  TogetherTiming TimeTogether(std::span<const int> rows, double seconds, const Window& window,
                              bool exact);
  /// Any thread: ends a measurement that goes on soon, and every later one at once. Runs are not
  /// concerned.
  void CancelTiming();

  bool has_drafter() const { return drafter_ != nullptr && !drafter_->lost; }
  LaneReport target_report() const { return Report(target_lane_); }
  LaneReport draft_report() const { return Report(draft_lane_); }

 private:
  struct Lane {
    std::shared_ptr<WorkerPool> pool;  // null for scripted models
    std::shared_ptr<CrewLane> crew;    // likewise
    mutable std::mutex mutex;
    std::vector<WorkerReport> threads;
  };
  class Timing;
  void RequireIdle() const;
  Drafter& RequireDrafter() const;
  std::span<const float> HeardBefore(std::span<const float> samples) const;
  std::span<const float> EncodingFor(const Drafter& drafter, const Window& window);
  using BudgetFactory = std::function<std::unique_ptr<BudgetPolicy>()>;
  /// How a decoupled strategy comes to its budget, once for each window of the batch.
  BudgetFactory PolicyOf(Method method, std::size_t budget, const RunOptions& options) const;
  std::unique_ptr<Strategy> MakeStrategy(Method method, std::size_t budget,
                                         const BudgetFactory& make_budget,
                                         Counters* counters) const;
  static LaneReport Report(const std::shared_ptr<Lane>& lane);
  static std::function<std::shared_ptr<void>()> Enter(const std::shared_ptr<Lane>& lane);
  static std::shared_ptr<void> Keep(const std::shared_ptr<Lane>& lane, bool lend);
  static std::shared_ptr<void> EnterNow(const std::shared_ptr<Lane>& lane);

  const std::shared_ptr<Crew> crew_ = Crew::Make();
  std::shared_ptr<Runtime> runtime_;
  const std::filesystem::path target_folder_;
  // One of them, or none for a scripted target.
  std::shared_ptr<WhisperModel> whisper_;
  std::shared_ptr<LlamaModel> llama_;
  std::shared_ptr<AudioLlmTarget> audio_llm_;
  std::shared_ptr<TargetModel> target_;
  // Read by both lanes, and by a draft lane that was left behind.
  std::shared_ptr<const Vocabulary> vocabulary_;
  std::shared_ptr<const WordTokenizer> tokenizer_;
  std::shared_ptr<const TokenKeys> keys_;
  std::shared_ptr<Drafter> drafter_;
  std::shared_ptr<Lane> target_lane_;
  std::shared_ptr<Lane> draft_lane_;
  std::weak_ptr<void> running_;  // the lease of the last run: gone once it is over
  std::mutex timing_mutex_;
  bool timing_ = false;  // a measurement goes on
  bool timing_cancelled_ = false;
};

/// Everything that a drafter says for one window: tokens of its own vocabulary, and their bytes.
struct Said {
  std::vector<TokenId> tokens;
  std::string text;
};

/// Lets a drafter's bundle say it; for checking a bundle that cannot be a target. A head needs the
/// bundle of its target, whose encoder it hears through; no other looks at it. Blocks. Throws
/// Error, naming the file.
Said DraftAlone(const std::filesystem::path& ort_library, const std::filesystem::path& drafter,
                Window window, const std::filesystem::path& target = {});

}  // namespace as2d
