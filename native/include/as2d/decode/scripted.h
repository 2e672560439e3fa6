// Models that follow a script: for tests, and for replaying a known text as an oracle drafter.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "as2d/decode/models.h"

namespace as2d {

/// What a scripted model says for windows by index; a window without an entry is said nothing for.
using Script = std::map<std::int64_t, std::vector<TokenId>>;

/// A target that says its script, as long as its caches hold the prompt and the script so far, and
/// other tokens after anything else: a wrong candidate that was kept, a wrong rewind or a leaking
/// cache changes what it says. Rows and moves that no caller may ask for throw Error. The first
/// sample of a window, rounded, is its index in the script. Of a token t it says the
/// log-probability -t / 1000, and that nobody speaks with 0.25.
class ScriptedTarget final : public TargetModel {
 public:
  struct Options {
    int vocabulary_size = 1000;
    int context = 448;
    TokenId end_token = 999;
    TokenId first_timestamp = Choice::kEnd;
    bool even_rows_only = true;
    int slots = 1;
    std::chrono::microseconds encode_time{0};
    std::chrono::microseconds step_time{0};
  };

  ScriptedTarget(Script script, Options options);

  void Encode(std::span<const float> samples, int slot) override;
  /// Timestamps where `first_timestamp` is one and the window wants them. Its script has them then,
  /// and a row whose choice is not what the rules make of its text says something else.
  ChoiceRules Rules(const Window& window) const override;
  FirstToken Prompt(std::span<const TokenId> prompt, const Choice& choice, int slot) override;
  void Forward(std::span<const Row> rows, std::span<TokenId> next,
               std::span<float> log_probability) override;
  /// Token i of `text` begins at second i.
  std::vector<float> TokenTimes(const Window& window, std::span<const TokenId> text,
                                int slot) override;
  void Move(int slot, int from, int to, int count) override;
  /// One line: the window's samples.
  std::span<const float> encoding() const override { return encoding_; }
  std::size_t encoding_width() const override { return encoding_.size(); }
  int slots() const override { return options_.slots; }
  int context() const override { return options_.context; }
  TokenId end_token() const override { return options_.end_token; }
  int vocabulary_size() const override { return options_.vocabulary_size; }
  bool even_rows_only() const override { return options_.even_rows_only; }
  void Cancel() override { cancelled_ = true; }
  void ClearCancel() override { cancelled_ = false; }

  /// Rows of every Forward so far; read while no call runs.
  const std::vector<std::size_t>& steps() const { return steps_; }

 private:
  /// What is known of one window.
  struct Slot {
    std::int64_t window = -1;
    std::vector<TokenId> prompt;
    std::vector<TokenId> cache;
    bool timestamps = false;
  };

  Slot& SlotOf(int slot);
  void Put(const Row& row, bool first_of_slot);
  TokenId Next(const Slot& slot, std::span<const TokenId> seen, const Choice& choice) const;
  void Wait(std::chrono::microseconds time) const;

  const Script script_;
  const Options options_;
  std::atomic<bool> cancelled_{false};
  std::vector<float> encoding_;
  std::vector<Slot> slots_;
  std::vector<std::size_t> steps_;
};

/// A drafter that says its script by window index, a token at a time, and then ends or fails as it
/// was told. Tokens are in whatever vocabulary the caller means. After a history of n tokens it
/// goes on with its script's token n, if the history is the script's so far; after any other it
/// says tokens that come of the history, each one more than the last. It throws Error when the
/// encoding it is given is not, or is no more, what a ScriptedTarget says of the window.
class ScriptedDrafter final : public DraftModel {
 public:
  enum class Ending : std::uint8_t {
    kEnd,    ///< ends
    kThrow,  ///< throws Error
    kHang,   ///< blocks until `Release`, whatever `Cancel` says
    kNever,  ///< repeats its last token (0 without one) without end
  };
  struct Options {
    Ending ending = Ending::kEnd;
    std::chrono::microseconds token_time{0};
    std::chrono::microseconds encode_time{0};
    /// Given to every token that is the script's; others get half of it.
    float confidence = 1;
    bool needs_encoding = false;
  };

  ScriptedDrafter(Script script, Options options);

  bool needs_encoding() const override { return options_.needs_encoding; }
  void Begin(const Window& window, std::span<const float> encoding) override;
  bool Next(std::vector<TokenId>* tokens) override;
  void Follow(std::span<const TokenId> history) override;
  bool encoding() const override { return !encoded_; }
  float confidence() const override {
    return strayed_ ? options_.confidence / 2 : options_.confidence;
  }
  void Cancel() override { cancelled_ = true; }
  void ClearCancel() override { cancelled_ = false; }

  /// Any thread: lets a hanging call go on.
  void Release();

 private:
  void Wait(std::chrono::microseconds time) const;
  void CheckEncoding() const;

  const Script script_;
  const Options options_;
  std::atomic<bool> cancelled_{false};
  std::span<const float> samples_;
  std::span<const float> encoding_;
  std::span<const TokenId> script_of_window_;
  std::span<const TokenId> rest_;
  TokenId last_ = 0;
  bool strayed_ = false;  // it follows a history that is not its script's
  bool encoded_ = false;
  std::mutex mutex_;
  std::condition_variable released_changed_;
  bool released_ = false;
};

}  // namespace as2d
