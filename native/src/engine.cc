#include "as2d/engine.h"

#include <functional>
#include <optional>
#include <utility>

#include "as2d/decode/strategy.h"
#include "as2d/error.h"
#include "as2d/models/bundle.h"
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

std::shared_ptr<DraftModel> MakeDraftModel(const std::shared_ptr<const Runtime>& runtime,
                                           const Bundle& bundle,
                                           const std::shared_ptr<WorkerPool>& pool) {
  const std::string& family = bundle.Text("family");
  if (family == "whisper") {
    return std::make_shared<WhisperDrafter>(std::make_shared<WhisperModel>(runtime, bundle, pool));
  }
  if (family == "moonshine") return std::make_shared<MoonshineDrafter>(runtime, bundle, pool);
  throw Error(bundle.folder().string() + ": no driver for the family '" + family + "'");
}

/// A retokenizer and the tables that it reads.
struct Crossing {
  std::shared_ptr<const Vocabulary> source;
  std::shared_ptr<const Vocabulary> target_vocabulary;
  std::shared_ptr<const WordTokenizer> target;
};

}  // namespace

Engine::Engine(const std::filesystem::path& ort_library, const std::filesystem::path& target,
               const LaneCores& target_lane)
    : runtime_(Runtime::Open(ort_library)), target_lane_(std::make_shared<Lane>()) {
  const Bundle bundle = Bundle::Open(target);
  if (bundle.Text("family") != "whisper") {
    throw Error(target.string() + ": a model of the family '" + bundle.Text("family") +
                "' cannot be the target; it can be the drafter");
  }
  target_lane_->pool = MakePool("as2d-target", target_lane);
  whisper_ = std::make_shared<WhisperModel>(runtime_, bundle, target_lane_->pool);
  target_ = std::make_shared<WhisperTarget>(whisper_);
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
  auto lane = std::make_shared<Lane>();
  lane->pool = MakePool("as2d-draft", draft_lane);
  auto made = std::make_shared<Drafter>();
  made->model = MakeDraftModel(runtime_, bundle, lane->pool);
  const auto vocabulary = LoadVocabulary(bundle);
  if (*vocabulary != *vocabulary_) {
    made->make_retokenizer = [crossing = Crossing{vocabulary, vocabulary_, tokenizer_}] {
      return std::make_unique<Retokenizer>(*crossing.source, *crossing.target);
    };
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

std::string DraftAlone(const std::filesystem::path& ort_library,
                       const std::filesystem::path& drafter, Window window) {
  const Bundle bundle = Bundle::Open(drafter);
  const auto model =
      MakeDraftModel(Runtime::Open(ort_library), bundle, WorkerPool::Unpinned("as2d-draft", 1));
  const auto vocabulary = LoadVocabulary(bundle);
  std::vector<TokenId> tokens;
  model->Begin(window);
  while (model->Next(&tokens)) {
  }
  std::string text;
  for (const TokenId token : tokens) text += vocabulary->Bytes(token);
  return text;
}

void Engine::RequireIdle() const {
  if (!running_.expired()) throw Error("a run of this engine still goes on; cancel it first");
}

std::unique_ptr<Run> Engine::Start(Method method, std::size_t budget, RunOptions options) {
  RequireIdle();
  const std::shared_ptr<Drafter> drafter =
      method == Method::kAs2d && has_drafter() ? drafter_ : nullptr;
  options.enter_target_lane = Enter(target_lane_);
  if (drafter) options.enter_draft_lane = Enter(draft_lane_);
  const StrategyFactory make_strategy = [&](Counters* counters) -> std::unique_ptr<Strategy> {
    if (!drafter) return std::make_unique<TargetOnly>();
    return std::make_unique<DecoupledDrafting>(keys_, std::make_unique<FixedBudget>(budget),
                                               counters);
  };
  options.lease = std::make_shared<char>();
  running_ = options.lease;
  return std::make_unique<Run>(target_, drafter, make_strategy, std::move(options));
}

std::vector<std::pair<std::string, float>> Engine::LanguageProbabilities(
    std::span<const float> samples) {
  if (!whisper_) throw Error("a scripted target knows no languages");
  RequireIdle();
  target_->ClearCancel();
  std::optional<WorkerPool::CallerPin> pin;
  pin.emplace(target_lane_->pool->PinCaller());
  whisper_->Encode(samples);
  return whisper_->LanguageProbabilities();
}

std::function<std::shared_ptr<void>()> Engine::Enter(const std::shared_ptr<Lane>& lane) {
  if (!lane->pool) return {};
  return [lane]() -> std::shared_ptr<void> {
    auto pin = std::make_shared<WorkerPool::CallerPin>(lane->pool->PinCaller());
    const std::lock_guard lock(lane->mutex);
    lane->threads = lane->pool->Report();
    return pin;
  };
}

LaneReport Engine::Report(const std::shared_ptr<Lane>& lane) {
  LaneReport report;
  if (!lane) return report;
  if (lane->pool) report.cores = lane->pool->cores();
  const std::lock_guard lock(lane->mutex);
  report.threads = lane->threads;
  return report;
}

}  // namespace as2d
