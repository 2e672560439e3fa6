#include "as2d/decode/choice.h"

namespace as2d {

void ChoiceRules::Push(TokenId token) {
  one_before_is_text_ = begun_ && !last_is_timestamp_;
  last_is_timestamp_ = IsTimestamp(token);
  if (last_is_timestamp_) last_timestamp_ = token;
  begun_ = true;
}

Choice ChoiceRules::Next() const {
  Choice choice;
  choice.temperature = temperature_;
  choice.seed = seed_;
  if (timestamps_ == Choice::kEnd) return choice;
  choice.timestamps = timestamps_;
  if (!begun_) {
    choice.first = timestamps_;
    choice.low = timestamps_;
    choice.high = timestamps_ + most_initial_ + 1;
  } else if (SegmentEnd() != Choice::kEnd) {
    choice.first = end_token_;
    choice.low = last_timestamp_;
  } else if (!last_is_timestamp_) {
    choice.low = last_timestamp_ + 1;
  }  // else a segment begins: with text
  return choice;
}

TokenId ChoiceRules::SegmentEnd() const {
  return last_is_timestamp_ && one_before_is_text_ ? last_timestamp_ : Choice::kEnd;
}

}  // namespace as2d
