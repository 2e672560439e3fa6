#include "as2d/kernels/choose.h"

#include <algorithm>

#include "kernels.h"

namespace as2d {
namespace {

/// What is beyond the vocabulary is its end: a graph may be given anything.
kernels::Choice ChoiceOf(ChoiceLine line, std::size_t n) {
  const auto within = [n](std::int32_t token) {
    return token < 0 ? n : std::min(n, static_cast<std::size_t>(token));
  };
  kernels::Choice choice = {};
  choice.timestamps = within(line[1]);
  choice.first = std::min(within(line[0]), choice.timestamps);
  choice.high = within(line[3]);
  choice.low = std::min(within(line[2]), choice.high);
  choice.score = within(line[4]);
  choice.seed = static_cast<std::uint32_t>(line[5]);
  return choice;
}

}  // namespace

Chosen ChooseToken(std::span<const float> logits, std::span<const float> suppress, ChoiceLine line,
                   float temperature) {
  kernels::Choice choice = ChoiceOf(line, logits.size());
  choice.temperature = temperature;
  Chosen chosen;
  kernels::Best().choose(logits.data(), suppress.data(), logits.size(), choice, &chosen.token,
                         &chosen.log_probability);
  return chosen;
}

}  // namespace as2d
