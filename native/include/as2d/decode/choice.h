// What the target may choose after a row, and how.
#pragma once

#include <cstdint>
#include <limits>

#include "as2d/text/vocabulary.h"

namespace as2d {

/// The choice after one row: a text token from `first` on, below `timestamps`, or a timestamp in
/// [low, high). What is beyond the vocabulary stands for its end.
struct Choice {
  static constexpr TokenId kEnd = std::numeric_limits<TokenId>::max();

  TokenId first = 0;
  TokenId timestamps = kEnd;  ///< the first token that is a timestamp; kEnd: no rules for them hold
  TokenId low = kEnd;
  TokenId high = kEnd;
  /// Above 0 the token is drawn from the distribution at this temperature, by noise that depends on
  /// `seed`, the row's position and the token alone: so a draft changes nothing here either.
  float temperature = 0;
  std::uint32_t seed = 0;
  /// Where this is a token, the row is that, whatever is likelier, and its log-probability is asked
  /// for.
  TokenId score = kEnd;

  bool operator==(const Choice&) const = default;
};

/// Which choice holds after a text: the rules of Whisper's decoder for timestamps (Radford et al.
/// 2022; openai/whisper, ApplyTimestampRules), or none. A value of some bytes: what holds after a
/// candidate is known from a copy that was given the candidates before it.
///
/// A text begins with a timestamp and may end with one. Between segments there are two, the end of
/// one and the beginning of the next. Times never go back, and a segment is longer than nothing.
class ChoiceRules {
 public:
  /// No timestamps: any token.
  ChoiceRules() = default;

  /// Timestamps are the tokens from `first_timestamp` on; the first one is at most `most_initial`
  /// steps of 20 ms. `end_token` lies between the text and the timestamps.
  ChoiceRules(TokenId end_token, TokenId first_timestamp, int most_initial)
      : end_token_(end_token),
        timestamps_(first_timestamp),
        most_initial_(most_initial),
        last_timestamp_(first_timestamp - 1) {}

  /// How tokens are drawn.
  void Sample(float temperature, std::uint32_t seed) {
    temperature_ = temperature;
    seed_ = seed;
  }

  /// The text goes on with `token`.
  void Push(TokenId token);

  /// What may come next.
  Choice Next() const;

  /// True for a timestamp, where there are any.
  bool IsTimestamp(TokenId token) const { return token >= timestamps_; }

  /// A segment has ended: what comes is the beginning of the next one, most often this same
  /// timestamp, or the end. kEnd where that is not so.
  TokenId SegmentEnd() const;

 private:
  TokenId end_token_ = 0;
  TokenId timestamps_ = Choice::kEnd;
  int most_initial_ = 0;
  float temperature_ = 0;
  std::uint32_t seed_ = 0;
  bool begun_ = false;  // there is a token
  bool last_is_timestamp_ = false;
  bool one_before_is_text_ = false;  // the last but one is there, and is no timestamp
  TokenId last_timestamp_ = 0;
};

}  // namespace as2d
