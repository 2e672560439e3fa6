// What the two lanes need of a model. Drivers of real graphs and scripted models implement these.
#pragma once

#include <span>
#include <vector>

#include "as2d/decode/window.h"
#include "as2d/text/vocabulary.h"

namespace as2d {

/// The model whose output the user gets. One thread at a time calls it (the target lane), except
/// for `Cancel`. It holds caches for one window: `Encode` begins a window and forgets the last one.
class TargetModel {
 public:
  virtual ~TargetModel() = default;

  /// Begins a window: encodes `samples` (16 kHz mono). Blocks. Throws Error, or Cancelled.
  virtual void Encode(std::span<const float> samples) = 0;

  /// Runs the whole prompt at positions [0, prompt.size()) and returns the first token, with the
  /// rules that hold only for a first token. Blocks. Throws Error, or Cancelled.
  virtual TokenId Prompt(std::span<const TokenId> prompt) = 0;

  /// One forward over `rows` at positions [past, past + rows.size()): `next[i]` is the model's own
  /// choice after rows[0..i]. Whatever was cached at `past` and after it is overwritten, so a
  /// rewind is a smaller `past`. Needs past + rows.size() <= context(). Blocks. Throws Error, or
  /// Cancelled.
  virtual void Forward(std::span<const TokenId> rows, int past, std::span<TokenId> next) = 0;

  virtual int context() const = 0;          ///< positions that the caches hold
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

/// Whatever proposes tokens. It follows its own history: nothing of the target's text reaches it.
/// One thread at a time calls it (the draft lane), except for `Cancel`.
class DraftModel {
 public:
  virtual ~DraftModel() = default;

  /// Begins a window and forgets the last one. `window` stays valid until its
  /// draft is complete or given up.
  virtual void Begin(const Window& window) = 0;

  /// Does one bounded piece of work (an encoder pass, or one step) and appends the tokens that came
  /// of it, if any, in the drafter's own vocabulary. Returns false when the draft is complete; call
  /// no more then. Blocks. Throws anything: the draft lane takes it as the end of drafting.
  virtual bool Next(std::vector<TokenId>* tokens) = 0;

  /// True when the last piece of work was on the encoder.
  virtual bool encoding() const = 0;

  /// Any thread: makes a running call, and every later one, throw Cancelled soon.
  virtual void Cancel() = 0;
  /// Any thread, while no call runs: takes `Cancel` back.
  virtual void ClearCancel() = 0;
};

}  // namespace as2d
