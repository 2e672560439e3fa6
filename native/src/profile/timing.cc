#include "as2d/profile/timing.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "as2d/error.h"

namespace as2d {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kSampleRate = 16000;

// As much text as most requests have; what a large context holds would take long.
constexpr int kMostBefore = 512;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

std::vector<float> Noise(double seconds) {
  std::vector<float> samples(static_cast<std::size_t>(std::lround(seconds * kSampleRate)));
  std::uint32_t state = 1;
  for (float& sample : samples) {
    state = state * 1664525U + 1013904223U;
    sample = 0.1F * (static_cast<float>(state >> 8) / 8388608.0F - 1.0F);
  }
  return samples;
}

std::vector<double> TimeEncode(TargetModel& target, double seconds_of_audio, std::size_t repeats,
                               Deadline deadline) {
  std::vector<float> samples = Noise(seconds_of_audio);
  const auto encode = [&] {
    // A target may know what it has heard before.
    if (!samples.empty()) samples.front() = -samples.front();
    const Clock::time_point start = Clock::now();
    target.Encode(samples, 0);
    return SecondsSince(start);
  };
  const double first = encode();
  std::vector<double> times;
  while (times.size() < repeats && Clock::now() < deadline) times.push_back(encode());
  if (times.empty()) times.push_back(first);
  return times;
}

StepTimer::StepTimer(TargetModel& target, std::span<const float> samples, bool pad)
    : target_(target),
      pad_(pad && target.even_rows_only()),
      first_(std::min(target.context() / 2, kMostBefore)) {
  target_.Encode(samples, 0);
  const std::vector<TokenId> before(static_cast<std::size_t>(first_), 0);
  target_.Prompt(before, Choice(), 0);
}

std::vector<std::vector<double>> StepTimer::Time(std::span<const int> rows, std::size_t repeats,
                                                 Deadline deadline) {
  for (const int count : rows) Require(count);
  for (const int count : rows) Forward(count);
  std::vector<std::vector<double>> times(rows.size());
  for (std::size_t round = 0; round < repeats; ++round) {
    if (round > 0 && Clock::now() >= deadline) break;
    for (std::size_t i = 0; i < rows.size(); ++i) times[i].push_back(Forward(rows[i]));
  }
  return times;
}

void StepTimer::Require(int rows) const {
  const int most = target_.context() - first_ - (pad_ ? 1 : 0);
  if (rows >= 1 && rows <= most) return;
  throw Error("cannot time a step of " + std::to_string(rows) + " rows; choose from 1 to " +
              std::to_string(most));
}

double StepTimer::Forward(int rows) {
  rows_.clear();
  const int padded = rows + (pad_ ? rows % 2 : 0);
  for (int at = first_; at < first_ + padded; ++at) {
    rows_.push_back({.token = 0, .position = at, .slot = 0, .at = at});
  }
  next_.resize(rows_.size());
  log_probability_.resize(rows_.size());
  const Clock::time_point start = Clock::now();
  target_.Forward(rows_, next_, log_probability_);
  return SecondsSince(start);
}

DraftTiming TimeDraft(DraftModel& drafter, const Window& window, std::span<const float> encoding,
                      Retokenizer* retokenizer, const std::function<bool()>& stop) {
  DraftTiming timing;
  std::vector<TokenId> drafted;
  std::vector<TokenId> ready;
  drafter.Begin(window, encoding);
  if (retokenizer != nullptr) retokenizer->Reset();
  for (bool stepped = false; !timing.complete && !(stepped && stop());) {
    drafted.clear();
    double& seconds = drafter.encoding() ? timing.encode : timing.steps;
    stepped = !drafter.encoding();
    const Clock::time_point start = Clock::now();
    timing.complete = !drafter.Next(&drafted);
    // The words are put together within the time, as in the draft lane.
    if (retokenizer != nullptr) {
      for (const TokenId token : drafted) retokenizer->Push(token, &ready);
      if (timing.complete) retokenizer->Finish(&ready);
    } else {
      ready.insert(ready.end(), drafted.begin(), drafted.end());
    }
    seconds += SecondsSince(start);
  }
  timing.tokens = std::move(ready);
  return timing;
}

}  // namespace as2d
