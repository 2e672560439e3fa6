#include "as2d/decode/draft_channel.h"

#include <utility>

#include "as2d/platform/crew.h"

namespace as2d {

void DraftChannel::Ask(DraftRequest request) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    request_ = std::move(request);
    reply_.reset();
    told_.clear();
    forgotten_ = false;
  }
  changed_.notify_all();
}

std::vector<TokenId> DraftChannel::TakeTold() {
  const std::lock_guard lock(mutex_);
  return std::exchange(told_, {});
}

void DraftChannel::Forget() {
  const std::lock_guard lock(mutex_);
  request_.reset();
  told_.clear();
  forgotten_ = true;
}

bool DraftChannel::Tell(std::span<const TokenId> tokens) {
  const std::lock_guard lock(mutex_);
  // With another request waiting, these are of the one before it.
  if (closed_ || forgotten_ || request_) return false;
  told_.insert(told_.end(), tokens.begin(), tokens.end());
  return true;
}

std::optional<DraftReply> DraftChannel::Wait() {
  const CrewLane::Rest rest;
  std::unique_lock lock(mutex_);
  const bool in_time =
      changed_.wait_for(lock, patience_, [this] { return reply_.has_value() || closed_; });
  if (!in_time) closed_ = timed_out_ = true;
  if (!reply_) return std::nullopt;
  return std::exchange(reply_, std::nullopt);
}

std::optional<DraftRequest> DraftChannel::Next() {
  const CrewLane::Rest rest;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return request_.has_value() || closed_; });
  if (closed_) return std::nullopt;
  return std::exchange(request_, std::nullopt);
}

void DraftChannel::Answer(DraftReply reply) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    reply_ = std::move(reply);
  }
  changed_.notify_all();
}

void DraftChannel::Close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
}

bool DraftChannel::timed_out() const {
  const std::lock_guard lock(mutex_);
  return timed_out_;
}

}  // namespace as2d
