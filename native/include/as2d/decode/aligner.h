// Where in the draft stream the committed prefix ends.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "as2d/text/token_keys.h"
#include "as2d/text/vocabulary.h"

namespace as2d {

/// An online edit distance between the committed prefix and the draft stream, both append-only.
/// After a rejection the two texts differ for a while and then agree again; the least distance
/// finds where. Either side may be ahead. Each append costs O(band). Used by the target lane only.
///
/// With D(i, j) the distance between the first i committed and the first j draft tokens, it keeps
/// the frontier of the table: the column D(committed, .) and the row D(., drafted). A committed
/// token makes the next column, a draft token the next row. Both are kept only within `band` cells
/// around their least value.
class Aligner {
 public:
  /// `keys` must outlive this. `band` >= 1.
  explicit Aligner(const TokenKeys& keys, int band = 64);

  /// Forgets everything; for the next window.
  void Reset();

  void PushCommitted(TokenId token);
  void PushDraft(TokenId token);

  /// The number of draft tokens that the committed prefix stands for: candidates begin there.
  /// The position with the least distance; ties go to one whose last token is the last committed
  /// one, then to the furthest. None when the drafter is late by more than the band.
  std::optional<std::size_t> Position() const;

  /// Another place where the committed prefix could end: the position with the least distance whose
  /// next draft token is none of `taken`, the furthest of equals. None where there is none, or none
  /// that costs at most two wrong tokens more than the best.
  std::optional<std::size_t> OtherPosition(std::span<const TokenId> taken) const;

  /// Draft tokens after `position`, at most `count`; empty when there are none.
  std::span<const TokenId> Candidates(std::size_t position, std::size_t count) const;

  std::size_t committed() const { return committed_.size(); }
  std::size_t drafted() const { return draft_.size(); }

 private:
  /// Distances for positions [low, low + values.size()) of one side; cells outside are unknown.
  struct Frontier {
    std::size_t low = 0;
    std::vector<int> values;

    std::size_t end() const { return low + values.size(); }
    std::size_t Best() const;
    int At(std::size_t position) const;
  };

  int Substitution(TokenId a, TokenId b) const;
  int Gap(TokenId token, int gap) const;
  void Advance(const std::vector<TokenId>& along, int along_gap, TokenId token, int gap,
               Frontier* frontier, Frontier* other, std::size_t other_position);

  const TokenKeys& keys_;
  const std::size_t band_;
  std::vector<TokenId> committed_;
  std::vector<TokenId> draft_;
  Frontier column_;  // D(committed, j) over j
  Frontier row_;     // D(i, drafted) over i
  std::vector<int> scratch_;
};

}  // namespace as2d
