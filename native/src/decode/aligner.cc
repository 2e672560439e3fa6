#include "as2d/decode/aligner.h"

#include <algorithm>
#include <limits>

namespace as2d {
namespace {

// Costs in tenths of a substitution. A token that matches but for case, leading space or
// punctuation is most of a match. Marks come and go with every change of punctuation and say little
// about the place. Passing over a draft token costs a little less than pairing it with another
// word, so that what only the draft says is skipped; a committed token that the draft does not have
// costs as much as a substitution, which the furthest of equal places then turns into one: in
// speech another word is likelier than one more.
constexpr int kSubstitution = 10;
constexpr int kSoftSubstitution = 4;
constexpr int kCommittedGap = 10;
constexpr int kDraftGap = 9;
constexpr int kMarkGap = 4;
// Far above any distance, and far enough below the limit that costs can be added to it.
constexpr int kUnknown = std::numeric_limits<int>::max() / 2;

}  // namespace

std::size_t Aligner::Frontier::Best() const {
  // The last of several least values: where nothing else tells, be further on.
  std::size_t best = 0;
  for (std::size_t i = 1; i < values.size(); ++i) {
    if (values[i] <= values[best]) best = i;
  }
  return low + best;
}

int Aligner::Frontier::At(std::size_t position) const {
  return position >= low && position < end() ? values[position - low] : kUnknown;
}

Aligner::Aligner(const TokenKeys& keys, int band)
    : keys_(keys), band_(static_cast<std::size_t>(std::max(band, 1))) {
  Reset();
}

void Aligner::Reset() {
  committed_.clear();
  draft_.clear();
  column_.low = row_.low = 0;
  column_.values.assign(1, 0);
  row_.values.assign(1, 0);
}

int Aligner::Substitution(TokenId a, TokenId b) const {
  if (a == b) return 0;
  return keys_.Key(a) == keys_.Key(b) ? kSoftSubstitution : kSubstitution;
}

int Aligner::Gap(TokenId token, int gap) const { return keys_.IsMark(token) ? kMarkGap : gap; }

void Aligner::PushCommitted(TokenId token) {
  committed_.push_back(token);
  Advance(draft_, kDraftGap, token, kCommittedGap, &column_, &row_, committed_.size());
}

void Aligner::PushDraft(TokenId token) {
  draft_.push_back(token);
  Advance(committed_, kCommittedGap, token, kDraftGap, &row_, &column_, draft_.size());
}

// `frontier` runs over the positions of `along` and belongs to the side that just got `token`;
// `other` runs over the side that got it, and learns its value at the new position.
void Aligner::Advance(const std::vector<TokenId>& along, int along_gap, TokenId token, int gap,
                      Frontier* frontier, Frontier* other, std::size_t other_position) {
  const std::size_t centre = frontier->Best();
  const std::size_t low = centre > band_ ? centre - band_ : 0;
  const std::size_t high = std::min(along.size(), centre + band_);
  scratch_.clear();
  int before = kUnknown;  // the new frontier's value at position - 1
  for (std::size_t position = low; position <= high; ++position) {
    int value = frontier->At(position) + Gap(token, gap);
    if (position > 0) {
      const TokenId passed = along[position - 1];
      value = std::min(value, frontier->At(position - 1) + Substitution(passed, token));
      value = std::min(value, before + Gap(passed, along_gap));
    }
    before = std::min(value, kUnknown);
    scratch_.push_back(before);
  }
  frontier->low = low;
  frontier->values.swap(scratch_);

  // The corner of the table is on both frontiers.
  const int corner = frontier->At(along.size());
  if (corner >= kUnknown) return;  // this side is out of reach of the other's end
  if (other->end() == other_position && other_position <= other->Best() + band_) {
    other->values.push_back(corner);
  } else if (other->Best() + 1 == other->end() && other->end() < other_position) {
    // The other frontier ended before it could follow, with its best at that end: it was late by
    // more than the band, and this is where the two meet again.
    other->low = other_position;
    other->values.assign(1, corner);
  }
}

std::optional<std::size_t> Aligner::Position() const {
  const std::size_t furthest = column_.Best();
  // Cut off at the end of what was known of the draft: the drafter was late, and what it has said
  // since is not placed yet.
  if (furthest + 1 == column_.end() && furthest < draft_.size()) return std::nullopt;
  const int least = column_.At(furthest);
  if (!committed_.empty()) {
    for (std::size_t j = furthest; j > column_.low; --j) {
      if (column_.At(j) == least && draft_[j - 1] == committed_.back()) return j;
    }
  }
  return furthest;
}

std::optional<std::size_t> Aligner::OtherPosition(std::span<const TokenId> taken) const {
  if (column_.values.empty()) return std::nullopt;
  std::optional<std::size_t> other;
  int least = column_.At(column_.Best()) + 2 * kSubstitution;
  for (std::size_t j = column_.low; j < std::min(column_.end(), draft_.size()); ++j) {
    if (column_.At(j) > least || std::ranges::find(taken, draft_[j]) != taken.end()) continue;
    least = column_.At(j);
    other = j;
  }
  return other;
}

std::span<const TokenId> Aligner::Candidates(std::size_t position, std::size_t count) const {
  const std::span<const TokenId> rest =
      std::span(draft_).subspan(std::min(position, draft_.size()));
  return rest.first(std::min(count, rest.size()));
}

}  // namespace as2d
