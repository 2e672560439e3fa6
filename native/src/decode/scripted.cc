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

}  // namespace

ScriptedTarget::ScriptedTarget(Script script, Options options)
    : script_(std::move(script)), options_(options) {}

void ScriptedTarget::Wait(std::chrono::microseconds time) const { Sleep(time, cancelled_); }

void ScriptedTarget::Encode(std::span<const float> samples) {
  Wait(options_.encode_time);
  window_ = samples.empty() ? -1 : std::lround(samples.front());
}

TokenId ScriptedTarget::Prompt(std::span<const TokenId> prompt) {
  Wait(options_.step_time);
  prompt_.assign(prompt.begin(), prompt.end());
  cache_ = prompt_;
  return Choose();
}

void ScriptedTarget::Forward(std::span<const TokenId> rows, int past, std::span<TokenId> next) {
  Wait(options_.step_time);
  if (past < 0 || static_cast<std::size_t>(past) > cache_.size()) {
    throw Error("scripted target: a step at position " + std::to_string(past) +
                " leaves a hole in the cache");
  }
  if (static_cast<std::size_t>(past) + rows.size() > static_cast<std::size_t>(options_.context)) {
    throw Error("scripted target: a step beyond the context");
  }
  if (options_.even_rows_only && rows.size() % 2 != 0) {
    throw Error("scripted target: an odd number of rows");
  }
  steps_.push_back(rows.size());
  cache_.resize(static_cast<std::size_t>(past));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] < 0 || rows[i] >= options_.vocabulary_size) {
      throw Error("scripted target: token " + std::to_string(rows[i]) +
                  " is not in the vocabulary");
    }
    cache_.push_back(rows[i]);
    next[i] = Choose();
  }
}

// The script's next token if the caches hold just what leads to it, otherwise one that depends on
// everything in them.
TokenId ScriptedTarget::Choose() const {
  static const std::vector<TokenId> kNothing;
  const auto entry = script_.find(window_);
  const std::vector<TokenId>& script = entry == script_.end() ? kNothing : entry->second;
  const std::span<const TokenId> said = std::span(cache_).subspan(prompt_.size());
  if (said.size() <= script.size() && std::equal(said.begin(), said.end(), script.begin()) &&
      std::equal(prompt_.begin(), prompt_.end(), cache_.begin())) {
    return said.size() == script.size() ? options_.end_token : script[said.size()];
  }
  std::uint32_t hash = 2166136261U;  // FNV-1a
  for (const TokenId token : cache_) hash = (hash ^ static_cast<std::uint32_t>(token)) * 16777619U;
  return static_cast<TokenId>(hash % static_cast<std::uint32_t>(options_.vocabulary_size));
}

ScriptedDrafter::ScriptedDrafter(Script script, Options options)
    : script_(std::move(script)), options_(options) {}

void ScriptedDrafter::Wait(std::chrono::microseconds time) const { Sleep(time, cancelled_); }

void ScriptedDrafter::Begin(const Window& window) {
  const auto entry = script_.find(window.index);
  rest_ = entry == script_.end() ? std::span<const TokenId>() : std::span(entry->second);
  last_ = 0;
  encoded_ = false;
}

bool ScriptedDrafter::Next(std::vector<TokenId>* tokens) {
  encoding_ = !std::exchange(encoded_, true);
  if (encoding_) {
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
