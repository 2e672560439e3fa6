#include "as2d/decode/scripted.h"

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>

#include "as2d/error.h"

namespace as2d {
namespace {

/// Sleeps in short pieces, so that a cancel is seen soon.
void Sleep(std::chrono::microseconds time, const std::atomic<bool>& cancelled) {
  constexpr std::chrono::microseconds kPiece{2000};
  while (time.count() > 0 && !cancelled) {
    const auto piece = std::min(time, kPiece);
    std::this_thread::sleep_for(piece);
    time -= piece;
  }
  if (cancelled) throw Cancelled("scripted model");
}

float LogProbability(TokenId token) { return static_cast<float>(token) / -1000.0F; }

}  // namespace

ScriptedTarget::ScriptedTarget(Script script, Options options)
    : script_(std::move(script)),
      options_(options),
      slots_(static_cast<std::size_t>(options.slots)) {}

void ScriptedTarget::Wait(std::chrono::microseconds time) const { Sleep(time, cancelled_); }

ScriptedTarget::Slot& ScriptedTarget::SlotOf(int slot) {
  if (slot < 0 || slot >= options_.slots) {
    throw Error("scripted target: there is no slot " + std::to_string(slot));
  }
  return slots_[static_cast<std::size_t>(slot)];
}

void ScriptedTarget::Encode(std::span<const float> samples, int slot) {
  Wait(options_.encode_time);
  encoding_.assign(samples.begin(), samples.end());
  SlotOf(slot) = {
      .window = samples.empty() ? -1 : std::lround(samples.front()), .prompt = {}, .cache = {}};
}

std::vector<float> ScriptedTarget::TokenTimes(const Window&, std::span<const TokenId> text, int) {
  std::vector<float> times(text.size() + 1);
  for (std::size_t i = 0; i < times.size(); ++i) times[i] = static_cast<float>(i);
  return times;
}

ChoiceRules ScriptedTarget::Rules(const Window& window) const {
  if (!window.timestamps || options_.first_timestamp == Choice::kEnd) return {};
  return {options_.end_token, options_.first_timestamp, 50};
}

FirstToken ScriptedTarget::Prompt(std::span<const TokenId> prompt, const Choice& choice, int slot) {
  Wait(options_.step_time);
  Slot& ours = SlotOf(slot);
  ours.prompt.assign(prompt.begin(), prompt.end());
  ours.cache = ours.prompt;
  ours.timestamps = choice.timestamps != Choice::kEnd;
  const TokenId first = Next(ours, ours.cache, choice);
  return {.token = first, .log_probability = LogProbability(first), .no_speech = 0.25F};
}

void ScriptedTarget::Forward(std::span<const Row> rows, std::span<TokenId> next,
                             std::span<float> log_probability) {
  Wait(options_.step_time);
  if (options_.even_rows_only && rows.size() % 2 != 0) {
    throw Error("scripted target: an odd number of rows");
  }
  steps_.push_back(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Put(rows[i], std::ranges::none_of(rows.first(i), [&](const Row& before) {
          return before.slot == rows[i].slot;
        }));
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    const Slot& slot = SlotOf(row.slot);
    std::vector<TokenId> seen(slot.cache.begin(), slot.cache.begin() + row.shared);
    seen.insert(seen.end(), slot.cache.begin() + row.begin, slot.cache.begin() + row.at + 1);
    if (static_cast<std::size_t>(row.position) + 1 != seen.size()) {
      throw Error("scripted target: a row at position " + std::to_string(row.position) + " sees " +
                  std::to_string(seen.size()) + " tokens");
    }
    next[i] = Next(slot, seen, row.choice);
    log_probability[i] = LogProbability(next[i]);
  }
}

// What a row keeps in the cache.
void ScriptedTarget::Put(const Row& row, bool first_of_slot) {
  if (row.token < 0 || row.token >= options_.vocabulary_size) {
    throw Error("scripted target: token " + std::to_string(row.token) +
                " is not in the vocabulary");
  }
  if (row.at < 0 || row.at >= options_.context) {
    throw Error("scripted target: a step beyond the context");
  }
  if (row.shared < 0 || row.shared > row.begin || row.begin > row.at) {
    throw Error("scripted target: a row at " + std::to_string(row.at) + " cannot see [0, " +
                std::to_string(row.shared) + ") and what begins at " + std::to_string(row.begin));
  }
  std::vector<TokenId>& cache = SlotOf(row.slot).cache;
  const auto at = static_cast<std::size_t>(row.at);
  if (first_of_slot ? at > cache.size() : at != cache.size()) {
    throw Error("scripted target: a step at position " + std::to_string(row.at) +
                " leaves a hole in the cache");
  }
  cache.resize(at);
  cache.push_back(row.token);
}

void ScriptedTarget::Move(int slot, int from, int to, int count) {
  std::vector<TokenId>& cache = SlotOf(slot).cache;
  if (to < 0 || to >= from || count < 0 || from + count > static_cast<int>(cache.size())) {
    throw Error("scripted target: cannot move " + std::to_string(count) + " from " +
                std::to_string(from) + " to " + std::to_string(to));
  }
  std::copy_n(cache.begin() + from, count, cache.begin() + to);
  cache.resize(static_cast<std::size_t>(to + count));
}

// The script's next token if a row sees just what leads to it, otherwise one that depends on
// everything it sees.
TokenId ScriptedTarget::Next(const Slot& slot, std::span<const TokenId> seen,
                             const Choice& choice) const {
  static const std::vector<TokenId> kNothing;
  const auto entry = script_.find(slot.window);
  const std::vector<TokenId>& script = entry == script_.end() ? kNothing : entry->second;
  const std::span<const TokenId> said = seen.subspan(std::min(slot.prompt.size(), seen.size()));
  Window window;
  window.timestamps = slot.timestamps;
  ChoiceRules rules = Rules(window);
  for (const TokenId token : said) rules.Push(token);
  const bool allowed = rules.Next() == choice;
  if (allowed && said.size() <= script.size() &&
      std::equal(said.begin(), said.end(), script.begin()) &&
      std::ranges::equal(slot.prompt, seen.first(seen.size() - said.size()))) {
    return said.size() == script.size() ? options_.end_token : script[said.size()];
  }
  std::uint32_t hash = 2166136261U;  // FNV-1a
  for (const TokenId token : seen) hash = (hash ^ static_cast<std::uint32_t>(token)) * 16777619U;
  return static_cast<TokenId>(hash % static_cast<std::uint32_t>(options_.vocabulary_size));
}

ScriptedDrafter::ScriptedDrafter(Script script, Options options)
    : script_(std::move(script)), options_(options) {}

void ScriptedDrafter::Wait(std::chrono::microseconds time) const { Sleep(time, cancelled_); }

void ScriptedDrafter::CheckEncoding() const {
  const std::span<const float> wanted =
      options_.needs_encoding ? samples_ : std::span<const float>();
  if (!std::ranges::equal(encoding_, wanted)) {
    throw Error("scripted drafter: the encoding is not the window's");
  }
}

void ScriptedDrafter::Begin(const Window& window, std::span<const float> encoding) {
  samples_ = window.samples;
  encoding_ = encoding;
  CheckEncoding();
  const auto entry = script_.find(window.index);
  script_of_window_ =
      entry == script_.end() ? std::span<const TokenId>() : std::span(entry->second);
  rest_ = script_of_window_;
  last_ = 0;
  encoded_ = false;
  strayed_ = false;
}

void ScriptedDrafter::Follow(std::span<const TokenId> history) {
  strayed_ = history.size() > script_of_window_.size() ||
             !std::equal(history.begin(), history.end(), script_of_window_.begin());
  rest_ = strayed_ ? std::span<const TokenId>() : script_of_window_.subspan(history.size());
  last_ = history.empty() ? 0 : history.back();
}

bool ScriptedDrafter::Next(std::vector<TokenId>* tokens) {
  CheckEncoding();
  if (!std::exchange(encoded_, true)) {
    Wait(options_.encode_time);
    return true;
  }
  Wait(options_.token_time);
  if (!rest_.empty()) {
    last_ = rest_.front();
    tokens->push_back(last_);
    rest_ = rest_.subspan(1);
    return true;
  }
  if (strayed_) {
    tokens->push_back(++last_);
    return true;
  }
  switch (options_.ending) {
    case Ending::kEnd:
      return false;
    case Ending::kThrow:
      throw Error("the script says so");
    case Ending::kHang: {
      std::unique_lock lock(mutex_);
      released_changed_.wait(lock, [this] { return released_; });
      return false;
    }
    case Ending::kNever:
      tokens->push_back(last_);
      return true;
  }
  return false;
}

void ScriptedDrafter::Release() {
  {
    const std::lock_guard lock(mutex_);
    released_ = true;
  }
  released_changed_.notify_all();
}

}  // namespace as2d
