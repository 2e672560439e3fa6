#include "as2d/decode/verifier.h"

namespace as2d {

Verdict Verify(std::span<const TokenId> candidates, std::span<const TokenId> next,
               TokenId end_token, std::size_t room, std::vector<TokenId>* tokens) {
  Verdict verdict;
  for (std::size_t row = 0;; ++row) {
    if (verdict.committed == room) {
      verdict.finished = true;
      verdict.reason = FinishReason::kLimit;
      return verdict;
    }
    const bool agreed = row < candidates.size() && candidates[row] == next[row];
    if (agreed) ++verdict.accepted;
    if (next[row] == end_token) {
      verdict.finished = true;
      verdict.reason = FinishReason::kEnd;
      return verdict;
    }
    tokens->push_back(next[row]);
    ++verdict.committed;
    if (!agreed) break;
  }
  if (verdict.committed == room) {
    verdict.finished = true;
    verdict.reason = FinishReason::kLimit;
  }
  return verdict;
}

}  // namespace as2d
