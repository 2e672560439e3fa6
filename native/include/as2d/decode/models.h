// What the two lanes need of a model. Drivers of real graphs and scripted models implement these.
#pragma once

#include <span>
#include <vector>

#include "as2d/decode/choice.h"
#include "as2d/decode/window.h"
#include "as2d/text/vocabulary.h"

namespace as2d {

/// One row of a forward: a token, and its place in the caches of one window.
///
/// It keeps its keys and values at `at`, and sees what is kept at [0, shared) and [begin, at]. An
/// ordinary row has shared = begin = 0: it sees all that is before it. A candidate run that is not
/// the first one shares the committed prefix with it and begins further on, where none of its rows
/// sees the other run. A target whose caches cannot hold that refuses it with Error.
struct Row {
  TokenId token = 0;
  int position = 0;  ///< of the token in its window, as the model counts
  int slot = 0;      ///< whose caches: [0, slots())
  int at = 0;        ///< [0, context())
  int shared = 0;
  int begin = 0;
  Choice choice = {};  ///< of the token after it
};

/// What a target says first.
struct FirstToken {
  TokenId token = 0;
  float log_probability = 0;
  /// Probability that nobody speaks, as a model tells that was trained to; 0 of others.
  float no_speech = 0;
};

/// The model whose output the user gets. One thread at a time calls it (the target lane), except
/// for `Cancel`. It holds caches for `slots()` windows at a time: `Encode` begins a window and
/// forgets the last one of its slot.
class TargetModel {
 public:
  virtual ~TargetModel() = default;

  /// Begins a window: encodes `samples` (16 kHz mono). Blocks. Throws Error, or Cancelled.
  virtual void Encode(std::span<const float> samples, int slot) = 0;

  /// The rules for what this model says of `window`.
  virtual ChoiceRules Rules(const Window& window) const = 0;

  /// Runs the whole prompt at positions [0, prompt.size()) and returns the first token, with
  /// `choice` and the rules that hold only for a first token. Blocks. Throws Error, or Cancelled.
  virtual FirstToken Prompt(std::span<const TokenId> prompt, const Choice& choice, int slot) = 0;

  /// One forward over `rows`: `next[i]` is the model's own choice after rows[i] and what that row
  /// sees, `log_probability[i]` that of this choice. Rows of one slot are in ascending order of
  /// `at` and follow one another; what was cached there is overwritten, so a rewind is a smaller
  /// `at`. Blocks. Throws Error, or Cancelled.
  virtual void Forward(std::span<const Row> rows, std::span<TokenId> next,
                       std::span<float> log_probability) = 0;

  /// When `text`, what was said of the window in `slot` but for timestamps, was spoken: for each
  /// token the second at which it begins, counted from the beginning of the samples, and then the
  /// end of the last one. Empty where the model cannot tell. After it, a slot begins with Encode
  /// again. Blocks. Throws Error, or Cancelled.
  virtual std::vector<float> TokenTimes(const Window& window, std::span<const TokenId> text,
                                        int slot) {
    (void)window, (void)text, (void)slot;
    return {};
  }

  /// Moves what is cached at [from, from + count) to [to, to + count), to < from: a run that was
  /// accepted takes the place of the one beside it.
  virtual void Move(int slot, int from, int to, int count) = 0;

  /// What the encoder said of the samples of the last Encode: lines of `encoding_width()` numbers,
  /// the first one of the beginning. Valid until the next Encode.
  virtual std::span<const float> encoding() const = 0;
  virtual std::size_t encoding_width() const = 0;

  virtual int slots() const = 0;            ///< windows that the caches hold, >= 1
  virtual int context() const = 0;          ///< positions that the caches of a window hold
  virtual TokenId end_token() const = 0;    ///< is never a text token
  virtual int vocabulary_size() const = 0;  ///< Forward takes ids in [0, vocabulary_size())
  /// True when Forward's results are promised to be the same for every even number of rows >= 2,
  /// though perhaps not for one row: the target lane then pads its steps in exact mode.
  virtual bool even_rows_only() const = 0;

  /// Any thread: makes a running call, and every later one, throw Cancelled soon.
  virtual void Cancel() = 0;
  /// Any thread, while no call runs: takes `Cancel` back.
  virtual void ClearCancel() = 0;
};

/// Whatever proposes tokens. One thread at a time calls it (the draft lane), except for `Cancel`.
/// It follows its own history, and nothing of the target's text reaches it, unless a strategy
/// couples it to the target with `Follow`.
class DraftModel {
 public:
  virtual ~DraftModel() = default;

  /// Whether it hears what the target's encoder says of a window, and not the samples.
  virtual bool needs_encoding() const { return false; }

  /// Begins a window and forgets the last one. `encoding` is what the target's encoder says of it
  /// (see TargetModel), or empty for a drafter that does not need that. Both stay valid until the
  /// draft is complete or given up.
  virtual void Begin(const Window& window, std::span<const float> encoding) = 0;

  /// Does one bounded piece of work (an encoder pass, or one step) and appends the tokens that came
  /// of it, if any, in the drafter's own vocabulary. Returns false when the draft is complete; call
  /// no more then. Blocks. Throws anything: the draft lane takes it as the end of drafting.
  virtual bool Next(std::vector<TokenId>* tokens) = 0;

  /// Puts `history` (all of the window's text so far, in the drafter's own vocabulary) in the place
  /// of what the drafter has said: the next token comes after it. Also after the draft was
  /// complete. What the caches hold of it already is not computed again. Does not block.
  virtual void Follow(std::span<const TokenId> history) = 0;

  /// True when the next piece of work is on the encoder.
  virtual bool encoding() const = 0;

  /// Probability that the drafter gave to the last token that Next appended, or to its end.
  virtual float confidence() const = 0;

  /// Any thread: makes a running call, and every later one, throw Cancelled soon.
  virtual void Cancel() = 0;
  /// Any thread, while no call runs: takes `Cancel` back.
  virtual void ClearCancel() = 0;
};

}  // namespace as2d
