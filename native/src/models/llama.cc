#include "as2d/models/llama.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "as2d/error.h"
#include "decoder_rows.h"

namespace as2d {

LlamaModel::LlamaModel(std::shared_ptr<const Runtime> runtime, const Bundle& bundle,
                       std::shared_ptr<WorkerPool> pool)
    : bundle_(bundle),
      context_(bundle.Number("context", 4, 1 << 20)),
      vocabulary_size_(bundle.Number("vocabulary_size", 2, 1 << 24)),
      ends_(bundle),
      canceller_(runtime),
      decoder_(Session::Load(runtime, bundle.File("decoder"), OwnOperators(std::move(pool), 1))) {
  for (const ValueInfo& input : decoder_->inputs()) {
    if (input.name.starts_with("past_") && input.shape.size() != 4) {
      throw Error(decoder_->file().string() + ": input '" + input.name + "' is " +
                  ShapeText(input.shape) + ", which is no cache; pull the model again");
    }
  }
  tokens_ = Tensor(runtime, ElementType::kInt64, {1, context_});
  positions_ = Tensor(runtime, ElementType::kInt64, {context_});
  places_ = Tensor(runtime, ElementType::kInt32, {context_, 4});
  select_ = Tensor(runtime, ElementType::kInt64, {context_});
  suppress_ = Tensor(runtime, ElementType::kFloat32, {vocabulary_size_});
  next_ = Tensor(runtime, ElementType::kInt64, {1, context_});
  log_prob_ = Tensor(runtime, ElementType::kFloat32, {1, context_});
  choices_ = ChoiceRows(runtime, context_);
  ReserveSlots(1);
  StepOf(2, 2);  // what does not fit is told now, not in a run
}

LlamaModel::~LlamaModel() = default;

void LlamaModel::ReserveSlots(int slots) {
  if (slots <= slots_) return;
  // Nothing is let go before all is there: without memory for more, the model still works.
  std::vector<std::pair<std::string, Tensor>> cache;
  for (const ValueInfo& input : decoder_->inputs()) {
    if (!input.name.starts_with("past_")) continue;
    Shape shape = input.shape;
    shape[0] = slots;
    shape[2] = context_;
    cache.emplace_back(input.name.substr(std::string("past_").size()),
                       Tensor(decoder_->runtime(), input.type, std::move(shape)));
  }
  steps_.clear();
  cache_ = std::move(cache);
  slots_ = slots;
  held_.assign(static_cast<std::size_t>(slots), {});
}

Binding& LlamaModel::StepOf(std::size_t rows, std::size_t selected) {
  std::unique_ptr<Binding>& step = steps_[{rows, selected}];
  if (step) return *step;
  auto made = std::make_unique<Binding>(decoder_);
  const auto count = static_cast<std::int64_t>(rows);
  const auto wanted = static_cast<std::int64_t>(selected);
  made->BindInput("tokens", tokens_.View({1, count}));
  made->BindInput("positions", positions_.View({count}));
  made->BindInput("places", places_.View({count, 4}));
  made->BindInput("select", select_.View({wanted}));
  choices_.BindTo(made.get(), wanted);
  made->BindInput("suppress", suppress_);
  for (const auto& [suffix, tensor] : cache_) {
    made->BindInput("past_" + suffix, tensor);
    made->BindOutput("present_" + suffix, tensor);  // in place
  }
  made->BindOutput("next", next_.View({1, wanted}));
  made->BindOutput("log_prob", log_prob_.View({1, wanted}));
  step = std::move(made);
  return *step;
}

/// Tokens are chosen after the last `selected` of the rows.
void LlamaModel::Run(std::span<const Row> rows, std::size_t selected) {
  RequireFit(rows, context_);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    tokens_.values<std::int64_t>()[i] = rows[i].token;
    positions_.values<std::int64_t>()[i] = rows[i].position;
    const std::array<std::int32_t, 4> place = {rows[i].slot, rows[i].at, rows[i].shared,
                                               rows[i].begin};
    std::ranges::copy(place,
                      places_.values<std::int32_t>().begin() + static_cast<std::ptrdiff_t>(4 * i));
  }
  for (std::size_t i = 0; i < selected; ++i) {
    const std::size_t row = rows.size() - selected + i;
    select_.values<std::int64_t>()[i] = static_cast<std::int64_t>(row);
    choices_.Set(i, rows[row]);
  }
  StepOf(rows.size(), selected).Run(&canceller_);
}

TokenId LlamaModel::TokenOf(std::size_t row) const {
  return ends_.Of(static_cast<TokenId>(next_.values<std::int64_t>()[row]));
}

std::size_t LlamaModel::Held(std::span<const TokenId> text, int slot) const {
  const std::vector<TokenId>& held = held_.at(static_cast<std::size_t>(slot));
  return static_cast<std::size_t>(std::ranges::mismatch(held, text).in1 - held.begin());
}

bool LlamaModel::Feed(std::span<const TokenId> text, int slot, const Choice& choice) {
  // The last token is fed once more, for what comes after it.
  const std::size_t known = std::min(Held(text, slot), text.size() - 1);
  std::vector<TokenId>& held = held_[static_cast<std::size_t>(slot)];
  held.resize(known);  // what is behind that is overwritten
  const std::span<const TokenId> fresh =
      text.subspan(known, std::min(kBlockRows, text.size() - known));
  std::vector<Row> rows;
  for (const TokenId token : fresh) {
    const int at = static_cast<int>(known + rows.size());
    rows.push_back({.token = token, .position = at, .slot = slot, .at = at});
  }
  rows.back().choice = choice;
  Run(rows, 1);
  held.insert(held.end(), fresh.begin(), fresh.end());
  return held.size() == text.size();
}

void LlamaModel::Forward(std::span<const Row> rows, std::span<TokenId> next) {
  for (const Row& row : rows) {
    if (row.slot < 0 || row.slot >= slots_) {
      throw Error("there is no slot " + std::to_string(row.slot));
    }
    std::vector<TokenId>& held = held_[static_cast<std::size_t>(row.slot)];
    held.resize(std::min(held.size(), static_cast<std::size_t>(std::max(0, row.at))));
  }
  Run(rows, rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) next[i] = TokenOf(i);
}

void LlamaModel::Move(int slot, int from, int to, int count) {
  for (const auto& [name, tensor] : cache_) MoveCached(tensor, slot, from, to, count);
}

ChoiceRules LlamaTarget::Rules(const Window& window) const {
  ChoiceRules rules;
  rules.Sample(window.temperature, window.seed);
  return rules;
}

FirstToken LlamaTarget::Prompt(std::span<const TokenId> prompt, const Choice& choice, int slot) {
  while (!model_->Feed(prompt, slot, choice)) {
  }
  return {.token = model_->next(), .log_probability = model_->log_probability(0)};
}

void LlamaTarget::Forward(std::span<const Row> rows, std::span<TokenId> next,
                          std::span<float> log_probability) {
  model_->Forward(rows, next);
  for (std::size_t i = 0; i < rows.size(); ++i) log_probability[i] = model_->log_probability(i);
}

void LlamaDrafter::Begin(const Window& window, std::span<const float>) {
  text_ = window.draft_prompt.empty() ? window.prompt : window.draft_prompt;
  prompt_ = text_.size();
  const auto context = static_cast<std::size_t>(model_->context());
  if (prompt_ >= context) {
    throw Error("the prompt of " + std::to_string(prompt_) +
                " tokens leaves no room in the drafter's context of " + std::to_string(context));
  }
  most_ = std::min(context, prompt_ + static_cast<std::size_t>(window.max_tokens));
}

bool LlamaDrafter::Next(std::vector<TokenId>* tokens) {
  if (text_.size() >= most_) return false;
  if (!model_->Feed(text_, 0)) return true;
  confidence_ = std::exp(model_->log_probability(0));
  const TokenId next = model_->next();
  if (next == model_->end_token()) return false;
  text_.push_back(next);
  tokens->push_back(next);
  return text_.size() < most_;
}

void LlamaDrafter::Follow(std::span<const TokenId> history) {
  text_.resize(prompt_);
  text_.insert(text_.end(), history.begin(), history.end());
}

bool LlamaDrafter::encoding() const {
  return model_->Held(std::span(text_).first(prompt_), 0) < prompt_;
}

}  // namespace as2d
