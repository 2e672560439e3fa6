#include "as2d/engine.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "as2d/decode/paying_budget.h"
#include "as2d/decode/strategies/anchored.h"
#include "as2d/decode/strategies/coupled.h"
#include "as2d/decode/strategies/decoupled.h"
#include "as2d/decode/strategies/lookup.h"
#include "as2d/decode/strategies/multi.h"
#include "as2d/decode/strategies/pearl.h"
#include "as2d/decode/strategy.h"
#include "as2d/error.h"
#include "as2d/models/adapter_head.h"
#include "as2d/models/bundle.h"
#include "as2d/models/ctc_head.h"
#include "as2d/models/head.h"
#include "as2d/models/moonshine.h"
#include "as2d/text/retokenizer.h"
#include "as2d/text/vocabulary.h"

namespace as2d {
namespace {

std::shared_ptr<WorkerPool> MakePool(const std::string& name, const LaneCores& lane) {
  return lane.cores.empty() ? WorkerPool::Unpinned(name, lane.threads)
                            : WorkerPool::Pinned(name, lane.cores);
}

std::shared_ptr<const Vocabulary> LoadVocabulary(const Bundle& bundle) {
  return std::make_shared<const Vocabulary>(Vocabulary::Load(bundle.File("vocabulary").string()));
}

Bundle OpenTarget(const std::filesystem::path& folder) {
  Bundle bundle = Bundle::Open(folder);
  const std::string& family = bundle.Text("family");
  if (family != "whisper" && family != "llama" && family != "audio-llm") {
    throw Error(folder.string() + ": a model of the family '" + family +
                "' cannot be the target; it can be the drafter");
  }
  return bundle;
}

std::shared_ptr<DraftModel> MakeHead(const std::shared_ptr<const Runtime>& runtime,
                                     const Bundle& bundle,
                                     const std::shared_ptr<WorkerPool>& pool) {
  const std::string& kind = bundle.Text("kind");
  if (kind == "adapter") {
    return std::make_shared<AdapterHead>(std::make_shared<WhisperModel>(runtime, bundle, pool),
                                         Vocabulary::Load(bundle.File("vocabulary").string()));
  }
  if (kind == "ctc") return std::make_shared<CtcHead>(runtime, bundle, pool);
  throw Error(bundle.folder().string() + ": no driver for a head of the kind '" + kind +
              "'; upgrade as2d or choose another drafter");
}

std::shared_ptr<DraftModel> MakeDraftModel(const std::shared_ptr<const Runtime>& runtime,
                                           const Bundle& bundle,
                                           const std::shared_ptr<WorkerPool>& pool, bool brief) {
  const std::string& family = bundle.Text("family");
  if (family == "whisper") {
    return std::make_shared<WhisperDrafter>(std::make_shared<WhisperModel>(runtime, bundle, pool),
                                            brief);
  }
  if (family == "llama") {
    return std::make_shared<LlamaDrafter>(std::make_shared<LlamaModel>(runtime, bundle, pool));
  }
  if (family == "moonshine") return std::make_shared<MoonshineDrafter>(runtime, bundle, pool);
  if (family == "head") return MakeHead(runtime, bundle, pool);
  throw Error(bundle.folder().string() + ": no driver for the family '" + family + "'");
}

/// What it takes to turn one model's tokens into the other's.
struct Crossing {
  std::shared_ptr<const Vocabulary> source;
  std::shared_ptr<const Vocabulary> target;
  std::shared_ptr<const WordTokenizer> tokenizer;  // of `target`

  std::unique_ptr<Retokenizer> operator()() const {
    return std::make_unique<Retokenizer>(*source, *tokenizer);
  }
};

// The caches of every window of a batch take memory, used or not.
constexpr std::size_t kMostSlots = 16;

// Of a language model, where nothing was measured: what counts is how much dearer more rows are.
// Weights are read once for all of them, so that eight cost about half as much again as one.
const std::map<int, double> kLanguageModelSteps = {{1, 1.0}, {2, 1.05}, {4, 1.2},
                                                   {8, 1.5}, {16, 2.2}, {32, 3.8}};

// Below this probability a draft is as likely wrong as right.
constexpr float kLeastConfidence = 0.5F;

constexpr std::array<std::pair<std::string_view, Method>, 9> kMethods = {{
    {"target", Method::kTarget},
    {"as2d", Method::kAs2d},
    {"coupled", Method::kCoupled},
    {"adaptive", Method::kAdaptive},
    {"pearl", Method::kPearl},
    {"multi", Method::kMulti},
    {"lookup", Method::kLookup},
    {"batched", Method::kBatched},
    {"anchored", Method::kAnchored},
}};

bool IsCoupled(Method method) {
  return method == Method::kCoupled || method == Method::kAdaptive || method == Method::kPearl ||
         method == Method::kAnchored;
}

}  // namespace

std::optional<Method> MethodOf(std::string_view name) {
  const auto* const entry =
      std::ranges::find(kMethods, name, [](const auto& method) { return method.first; });
  if (entry == kMethods.end()) return std::nullopt;
  return entry->second;
}

bool NeedsDrafter(Method method) {
  return method == Method::kAs2d || method == Method::kMulti || IsCoupled(method);
}

Engine::Engine(const std::filesystem::path& ort_library, const std::filesystem::path& target,
               const LaneCores& target_lane)
    : runtime_(Runtime::Open(ort_library)),
      target_folder_(target),
      target_lane_(std::make_shared<Lane>()) {
  const Bundle bundle = OpenTarget(target);
  target_lane_->pool = MakePool("as2d-target", target_lane);
  target_lane_->crew = crew_->AddLane(target_lane_->pool);
  if (bundle.Text("family") == "llama") {
    llama_ = std::make_shared<LlamaModel>(runtime_, bundle, target_lane_->pool);
    target_ = std::make_shared<LlamaTarget>(llama_);
  } else if (bundle.Text("family") == "audio-llm") {
    audio_llm_ = std::make_shared<AudioLlmTarget>(runtime_, bundle, target_lane_->pool);
    target_ = audio_llm_;
  } else {
    whisper_ = std::make_shared<WhisperModel>(runtime_, bundle, target_lane_->pool);
    target_ = std::make_shared<WhisperTarget>(whisper_);
  }
  vocabulary_ = LoadVocabulary(bundle);
  if (vocabulary_->size() > static_cast<std::size_t>(target_->vocabulary_size())) {
    throw Error(bundle.File("vocabulary").string() + ": has " +
                std::to_string(vocabulary_->size()) + " tokens, more than the model's " +
                std::to_string(target_->vocabulary_size()) + "; pull the model again");
  }
  tokenizer_ = std::make_shared<const WordTokenizer>(*vocabulary_);
  keys_ = std::make_shared<const TokenKeys>(*vocabulary_);
}

Engine::Engine(Script script, ScriptedTarget::Options options)
    : target_(std::make_shared<ScriptedTarget>(std::move(script), options)),
      keys_(std::make_shared<const TokenKeys>()),
      target_lane_(std::make_shared<Lane>()) {}

void Engine::LoadDrafter(const std::filesystem::path& drafter, const LaneCores& draft_lane) {
  drafter_ = nullptr;
  draft_lane_ = nullptr;
  if (!runtime_) throw Error("a scripted target takes scripted drafters only");
  const Bundle bundle = Bundle::Open(drafter);
  const std::string& family = bundle.Text("family");
  if ((family == "llama") != (llama_ != nullptr)) {
    throw Error(drafter.string() + ": a language model drafts for language models only that do " +
                "not hear the audio, and they take no other; choose another drafter");
  }
  if (family == "head") {
    if (!whisper_) {
      throw Error(drafter.string() + ": a head drafts for its own speech model only; choose " +
                  "another drafter");
    }
    RequireTarget(bundle, whisper_->bundle(), whisper_->encoding_width());
  }
  auto lane = std::make_shared<Lane>();
  lane->pool = MakePool("as2d-draft", draft_lane);
  lane->crew = crew_->AddLane(lane->pool);
  auto made = std::make_shared<Drafter>();
  // The target as its own drafter shows what a perfect drafter gains, and so must be one.
  std::error_code none;
  const bool is_target = std::filesystem::equivalent(drafter, target_folder_, none);
  made->model = MakeDraftModel(runtime_, bundle, lane->pool, !is_target);
  const auto vocabulary = LoadVocabulary(bundle);
  if (*vocabulary != *vocabulary_) {
    made->make_retokenizer = Crossing{vocabulary, vocabulary_, tokenizer_};
    made->make_history_retokenizer =
        Crossing{vocabulary_, vocabulary, std::make_shared<const WordTokenizer>(*vocabulary)};
  }
  drafter_ = std::move(made);
  draft_lane_ = std::move(lane);
}

void Engine::SetDrafter(std::shared_ptr<ScriptedDrafter> drafter) {
  auto made = std::make_shared<Drafter>();
  made->model = std::move(drafter);
  drafter_ = std::move(made);
  draft_lane_ = std::make_shared<Lane>();
}

Said DraftAlone(const std::filesystem::path& ort_library, const std::filesystem::path& drafter,
                Window window, const std::filesystem::path& target) {
  const Bundle bundle = Bundle::Open(drafter);
  const auto runtime = Runtime::Open(ort_library);
  const auto pool = WorkerPool::Unpinned("as2d-draft", 1);
  std::shared_ptr<WhisperModel> heard;  // the target that a head hears through
  std::span<const float> encoding;
  if (bundle.Text("family") == "head") {
    if (target.empty()) {
      throw Error(drafter.string() + ": a head says nothing without its target; pull '" +
                  bundle.Text("target") + "', too");
    }
    heard = std::make_shared<WhisperModel>(runtime, OpenTarget(target), pool);
    RequireTarget(bundle, heard->bundle(), heard->encoding_width());
    heard->Encode(window.samples, 0);
    encoding = heard->encoding();
  }
  const auto model = MakeDraftModel(runtime, bundle, pool, false);
  const auto vocabulary = LoadVocabulary(bundle);
  Said said;
  model->Begin(window, encoding);
  while (model->Next(&said.tokens)) {
  }
  for (const TokenId token : said.tokens) said.text += vocabulary->Bytes(token);
  return said;
}

void Engine::RequireIdle() const {
  if (!running_.expired()) throw Error("a run of this engine still goes on; cancel it first");
}

std::unique_ptr<Run> Engine::Start(Method method, std::size_t budget, RunOptions options) {
  RequireIdle();
  if (method == Method::kMulti && audio_llm_) {
    throw Error("the method 'multi' verifies several runs beside each other, which the caches of " +
                std::string("this target cannot hold; choose another method"));
  }
  const std::shared_ptr<Drafter> drafter =
      NeedsDrafter(method) && has_drafter() ? drafter_ : nullptr;
  options.enter_target_lane = Enter(target_lane_);
  options.coupled = IsCoupled(method);
  if (method == Method::kBatched) options.batch = budget;
  options.batch = options.coupled ? 1 : std::clamp<std::size_t>(options.batch, 1, kMostSlots);
  // One to go on with when the first of a batch is done.
  options.max_lead_windows = static_cast<std::int64_t>(options.batch) + 1;
  options.encode_ahead = drafter && drafter->model->needs_encoding() && !options.coupled;
  const int slots = static_cast<int>(options.batch) + (options.encode_ahead ? 1 : 0);
  if (whisper_) whisper_->ReserveSlots(slots);
  if (llama_) llama_->ReserveSlots(slots);
  if (audio_llm_) audio_llm_->ReserveSlots(slots);
  if (drafter) options.enter_draft_lane = Enter(draft_lane_);
  if (NeedsDrafter(method) && !drafter) method = Method::kTarget;
  const BudgetFactory make_budget = PolicyOf(method, budget, options);
  const StrategyFactory make_strategy = [&](Counters* counters) {
    return MakeStrategy(method, budget, make_budget, counters);
  };
  options.lease = std::make_shared<char>();
  running_ = options.lease;
  return std::make_unique<Run>(target_, drafter, make_strategy, std::move(options));
}

Engine::BudgetFactory Engine::PolicyOf(Method method, std::size_t budget,
                                       const RunOptions& options) const {
  const auto fixed = [budget] { return std::make_unique<FixedBudget>(budget); };
  if (!options.adaptive) return fixed;
  CostCurve steps;
  if (options.costs) {
    steps = options.costs->drafted.known() ? options.costs->drafted : options.costs->alone;
  } else if (llama_) {
    steps = CostCurve(kLanguageModelSteps);
  }
  if (!steps.known()) return fixed;
  const bool pad = options.exact && target_->even_rows_only();
  if (method == Method::kLookup) {
    // Each has an acceptance of its own, by kinds of look-ups.
    return [budget, steps, pad] {
      return std::make_unique<PayingBudget>(budget, steps, pad, std::make_shared<Acceptance>());
    };
  }
  return [budget, steps, pad, acceptance = std::make_shared<Acceptance>()] {
    return std::make_unique<PayingBudget>(budget, steps, pad, acceptance);
  };
}

std::unique_ptr<Strategy> Engine::MakeStrategy(Method method, std::size_t budget,
                                               const BudgetFactory& make_budget,
                                               Counters* counters) const {
  switch (method) {
    case Method::kAs2d:
      return std::make_unique<DecoupledDrafting>(keys_, make_budget(), counters);
    case Method::kCoupled:
      return std::make_unique<CoupledDrafting>(std::make_unique<FixedBudget>(budget));
    case Method::kAdaptive:
      return std::make_unique<CoupledDrafting>(std::make_unique<AdaptiveBudget>(budget),
                                               kLeastConfidence);
    case Method::kPearl:
      return std::make_unique<PearlDrafting>(budget);
    case Method::kAnchored:
      return std::make_unique<AnchoredDrafting>(make_budget(), counters);
    case Method::kMulti:
      return std::make_unique<MultiDrafting>(keys_, budget, counters);
    case Method::kLookup:
      return std::make_unique<LookupDrafting>(make_budget);
    case Method::kTarget:
    case Method::kBatched:
      break;
  }
  return std::make_unique<TargetOnly>();
}

std::vector<std::pair<std::string, float>> Engine::LanguageProbabilities(
    std::span<const float> samples) {
  if (!whisper_) throw Error("only a speech model tells languages");
  RequireIdle();
  target_->ClearCancel();
  const std::shared_ptr<void> inside = Enter(target_lane_)();
  return whisper_->LanguageProbabilities(samples);
}

std::function<std::shared_ptr<void>()> Engine::Enter(const std::shared_ptr<Lane>& lane) {
  if (!lane->pool) return {};
  struct Inside {
    explicit Inside(const Lane& lane) : pin(lane.pool->PinCaller()), inside(lane.crew) {}
    const WorkerPool::CallerPin pin;
    const CrewLane::Inside inside;
  };
  return [lane]() -> std::shared_ptr<void> {
    auto inside = std::make_shared<Inside>(*lane);
    const std::lock_guard lock(lane->mutex);
    lane->threads = lane->pool->Report();
    return inside;
  };
}

LaneReport Engine::Report(const std::shared_ptr<Lane>& lane) {
  LaneReport report;
  if (!lane) return report;
  if (lane->pool) report.cores = lane->pool->cores();
  const std::lock_guard lock(lane->mutex);
  report.threads = lane->threads;
  // Before the first run: its helpers are there from the beginning.
  if (report.threads.empty() && lane->pool) report.threads = lane->pool->Report();
  return report;
}

}  // namespace as2d
