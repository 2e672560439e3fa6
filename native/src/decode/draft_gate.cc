#include "as2d/decode/draft_gate.h"

#include <cstdio>

namespace as2d {
namespace {

// A window that lasted longer because something else ran decides nothing.
constexpr int kEnough = 2;

// Of a window, what is left of it in the figures with each later one: three count.
constexpr double kMemory = 0.7;

// Below this a difference may be noise, and the gate would open and shut without end.
constexpr double kClear = 1.03;

// Windows before the first one without drafts, where there are no costs.
constexpr int kFirstComparison = 5;

constexpr int kProbeAfter = 4;

// A gain of less than this is compared with windows without drafts, after so many windows and then
// ever less often. A larger one is taken for granted: each comparison gives it away.
constexpr double kThin = 0.85;
constexpr int kCompareAfter = 8;

}  // namespace

DraftGate::DraftGate(bool costs_known)
    : costs_known_(costs_known), probe_after_(kProbeAfter), compare_after_(kCompareAfter) {}

void DraftGate::Recent::Add(const LaneSpan& span) {
  const auto add = [](double& total, double value) { total = kMemory * total + value; };
  add(sum.seconds, span.seconds);
  add(sum.encode_seconds, span.encode_seconds);
  add(sum.audio, span.audio);
  add(sum.tokens, span.tokens);
  add(sum.predicted, span.predicted);
}

bool DraftGate::AloneKnown() const {
  return costs_known_ || (alone_.sum.audio > 0 && alone_.sum.tokens > 0);
}

// The lane's time as a multiple of what the target alone should take.
double DraftGate::Multiple(const Recent& recent) const {
  if (costs_known_) return recent.sum.seconds / recent.sum.predicted;
  const LaneSpan& alone = alone_.sum;
  const double per_audio = alone.encode_seconds / alone.audio;
  const double per_token = (alone.seconds - alone.encode_seconds) / alone.tokens;
  return recent.sum.seconds / (per_audio * recent.sum.audio + per_token * recent.sum.tokens);
}

double DraftGate::Alone() const { return alone_.sum.seconds > 0 ? Multiple(alone_) : 1; }

bool DraftGate::Pays() const {
  return drafted_.sum.seconds <= 0 || Multiple(drafted_) <= Alone() * kClear;
}

std::optional<std::string> DraftGate::WindowFinished(const std::optional<LaneSpan>& span) {
  ++windows_;
  // Two windows may end with one step: there is nothing between them.
  if (span && span->seconds > 0 &&
      (costs_known_ ? span->predicted : span->audio + span->tokens) > 0) {
    ++fresh_;
    (open_ ? drafted_ : alone_).Add(*span);
  }
  switch (state_) {
    case State::kDrafting:
    case State::kProbing:
      if (!AloneKnown()) {
        if (windows_ < kFirstComparison) return std::nullopt;
        return Enter(State::kComparing);
      }
      if (fresh_ < kEnough) return std::nullopt;
      if (!Pays()) return Enter(State::kDropped);
      probe_after_ = kProbeAfter;
      if (windows_ < compare_after_ || Multiple(drafted_) < kThin * Alone()) return std::nullopt;
      compare_after_ *= 2;
      return Enter(State::kComparing);
    case State::kComparing:
      if (fresh_ == 0 || !AloneKnown()) return std::nullopt;
      return Enter(Pays() ? State::kDrafting : State::kDropped);
    case State::kDropped:
      if (windows_ >= probe_after_) {
        probe_after_ *= 2;
        return Enter(State::kProbing);
      }
      // It was no fault of the drafts.
      if (fresh_ >= kEnough && Alone() > Multiple(drafted_) * kClear) {
        return Enter(State::kDrafting);
      }
      return std::nullopt;
  }
  return std::nullopt;
}

std::string DraftGate::Enter(State state) {
  const int windows = windows_;
  windows_ = fresh_ = 0;
  state_ = state;
  open_ = state == State::kDrafting || state == State::kProbing;
  switch (state) {
    case State::kDrafting:
      return "drafting pays: " + Figures();
    case State::kDropped:
      return "drafting does not pay: " + Figures();
    case State::kComparing:
      alone_ = {};  // what is compared is to be new
      return "the target alone for a while, to compare";
    case State::kProbing:
      drafted_ = {};
      return "drafting again, to see whether it pays after " + std::to_string(windows) +
             " windows without";
  }
  return "";
}

// As multiples of what the target alone should take.
std::string DraftGate::Figures() const {
  char text[96];
  std::snprintf(text, sizeof text, "%.2f of the target's own time with drafts, %.2f without",
                Multiple(drafted_), Alone());
  return text;
}

}  // namespace as2d
