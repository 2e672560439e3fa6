#include "as2d/decode/replay.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "as2d/decode/aligner.h"
#include "as2d/decode/budget.h"
#include "as2d/decode/draft_stream.h"
#include "as2d/decode/strategies/decoupled.h"
#include "as2d/decode/verifier.h"
#include "as2d/trace/counters.h"

namespace as2d {

std::size_t ReplaySteps(std::span<const TokenId> text, std::span<const TokenId> draft,
                        TokenId end_token, std::size_t budget,
                        const std::shared_ptr<const TokenKeys>& keys) {
  if (text.empty()) return 0;
  DraftStream stream(draft.size() + 2);
  stream.Append(draft);
  stream.Append(std::span(&end_token, 1));
  Counters counters;
  DecoupledDrafting strategy(keys, std::make_unique<FixedBudget>(budget), &counters);
  strategy.BeginWindow({.window = nullptr, .stream = &stream, .channel = nullptr});
  // What the target says: the end once, and anything after it.
  std::vector<TokenId> all(text.begin(), text.end());
  all.push_back(end_token);
  std::size_t steps = 0;
  std::size_t committed = 1;
  strategy.Committed(text.first(1));
  for (bool finished = false; !finished; ++steps) {
    const std::size_t room = all.size() - committed;
    CandidateRuns runs;
    strategy.Propose(room - 1, &runs);
    const std::span<const TokenId> candidates = runs.empty() ? std::span<const TokenId>{} : runs[0];
    std::vector<TokenId> tokens;
    const Verdict verdict =
        Verify(candidates, std::span(all).subspan(committed), end_token, room, &tokens);
    if (!runs.empty()) strategy.Verified(runs, 0, verdict.accepted);
    strategy.Committed(tokens);
    committed += tokens.size();
    finished = verdict.finished;
  }
  strategy.EndWindow();
  return steps;
}

std::vector<DraftPlace> ReplayTrace(std::span<const TokenId> text, std::span<const TokenId> draft,
                                    TokenId end_token, const TokenKeys& keys) {
  std::vector<TokenId> said(text.begin(), text.end());
  said.push_back(end_token);
  Aligner aligner(keys);
  for (const TokenId token : draft) aligner.PushDraft(token);
  aligner.PushDraft(end_token);
  std::vector<DraftPlace> trace;
  trace.reserve(text.size());
  for (std::size_t committed = 1; committed <= text.size(); ++committed) {
    aligner.PushCommitted(text[committed - 1]);
    DraftPlace found{.place = aligner.Position().value_or(aligner.drafted())};
    const auto candidates = aligner.Candidates(found.place, aligner.drafted());
    const auto rest = std::span(said).subspan(committed);
    found.run =
        static_cast<std::size_t>(std::ranges::mismatch(candidates, rest).in1 - candidates.begin());
    trace.push_back(found);
  }
  return trace;
}

}  // namespace as2d
