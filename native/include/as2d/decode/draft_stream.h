// The append-only list of tokens that a drafter has produced for one window.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <span>

#include "as2d/text/vocabulary.h"

namespace as2d {

/// Single producer (draft lane), single consumer (target lane), no lock. Tokens are in the target's
/// vocabulary. What is published is never changed or taken back.
class DraftStream {
 public:
  /// Holds at most `capacity` tokens: a draft that never ends is cut there.
  explicit DraftStream(std::size_t capacity)
      : capacity_(capacity), tokens_(std::make_unique<TokenId[]>(capacity)) {}

  DraftStream(const DraftStream&) = delete;
  DraftStream& operator=(const DraftStream&) = delete;

  /// Producer: publishes `tokens`, or as many as still fit. Returns false once the stream is full.
  bool Append(std::span<const TokenId> tokens) {
    const std::size_t size = size_.load(std::memory_order_relaxed);
    const std::size_t fits = std::min(tokens.size(), capacity_ - size);
    for (std::size_t i = 0; i < fits; ++i) tokens_[size + i] = tokens[i];
    // Release: a consumer that sees the new size sees the tokens.
    size_.store(size + fits, std::memory_order_release);
    return size + fits < capacity_;
  }

  /// Consumer: all that is published so far; valid as long as the stream.
  std::span<const TokenId> Read() const {
    return {tokens_.get(), size_.load(std::memory_order_acquire)};
  }

 private:
  const std::size_t capacity_;
  const std::unique_ptr<TokenId[]> tokens_;
  // Apart, so that the consumer's polling does not slow the producer's writes to `tokens_`.
  alignas(64) std::atomic<std::size_t> size_{0};
};

}  // namespace as2d
