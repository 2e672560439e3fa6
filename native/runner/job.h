// What the runner is asked to do. as2d_cli/device/job.py writes jobs and reads results; a change of
// either format changes its number, here and there.
//
// A job is UTF-8 text. Its first line is "as2d-job 1"; then come `key: value` lines, a value being
// all that follows the blank, and sections, each begun by a line "[name]". Empty lines, and lines
// that begin with '#', say nothing. Unknown keys and sections are refused. Paths are of the working
// directory. Lists are separated by blanks, `yes` and `no` are the truth values.
//
//   kind: bench               or profile, or drafts
//   library: libonnxruntime.so
//   target: FOLDER            of a bundle; for kind drafts only where a head needs it
//   deadline: SECONDS         0, the default, for none
//   repeats: N                rounds of timing after everything was verified; 0 for none
//   spans: yes                tell what the lanes did when
//   drafts: yes               tell each drafter's own draft of each unit
//   cool_celsius: DEGREES     before each round's turn wait until no sensor says more; 0 for never
//   cool_seconds: SECONDS     but no longer than this
//   [drafter]                 numbered from 0, as all that follows
//   name: TEXT                what people call it
//   folder: FOLDER
//   [clip]
//   file: FILE                16 kHz mono PCM, little-endian
//   format: f32               or s16
//   [unit]                    what is timed as one piece
//   clip: NUMBER
//   language: CODE
//   prompt: IDS
//   max_tokens: N
//   window: FIRST COUNT       samples of the clip; one line for each window
//   expected: IDS             what the last window must say; may be missing
//   [contender]
//   method: as2d              see MethodOf
//   drafter: NUMBER           or `oracle`, who says what the reference says; may be missing
//   budget: N
//   windows: N                in a batch
//   exact: yes                RunOptions::exact
//   promised: yes             its text must be the reference's
//   reference: yes            one has it: its text is what the others are held against
//   baseline: yes             one has it: `calibrated` contenders get what suits it
//   adaptive: yes             RunOptions::adaptive
//   alone_steps: ROWS=SECONDS ...      what is known of the target's costs; may be missing
//   drafted_steps: ROWS=SECONDS ...
//   encode: BASE PER_SECOND
//   target_cores: CORES       the lane's own thread on the first
//   draft_cores: CORES
//   pin: yes                  bind threads to these cores
//   calibrated: yes           of target_cores only the first, as many as the baseline is best on
//   units: NUMBERS            those it takes part in; all where it is missing
//   [layout]                  kind profile: a way to share the cores
//   target_cores: CORES
//   draft_cores: CORES        none without a drafter
//   pin: yes
//
// Kind profile measures the first unit's first window with the first drafter, if there is one:
//   seconds: SECONDS          for all layouts together, two of them in any case
//   rows: NUMBERS             of the forwards that are timed
//   batches: N                rounds with a run of `batch` windows at a time
//   batch: N
//   audio: SECONDS ...        that the encoder is timed with, in turn
//
// The program: `as2d-runner run JOB` (`-` for standard input) does a job, `as2d-runner facts
// [LIBRARY]` tells about the machine and whether that library can be loaded. Results go to
// standard output, a JSON object a line; as2d_cli/device/results.py has their fields. Status 0:
// done; 1: done, but a text is not what was promised or expected; 2: a wrong command line or job;
// 3: a model or a library cannot be had, or the target failed; 124: the deadline has passed; 128
// and the signal: one of SIGHUP, SIGINT, SIGTERM, or SIGPIPE when nobody reads any more.
#pragma once

#include <cstdint>
#include <filesystem>
#include <istream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "as2d/text/vocabulary.h"

namespace as2d::runner {

inline constexpr const char* kJobFormat = "as2d-job 1";

struct Drafter {
  std::string name;
  std::filesystem::path folder;
};

struct Clip {
  std::filesystem::path file;
  bool is_s16 = false;
};

struct Piece {
  std::size_t first = 0;  ///< sample of the clip
  std::size_t count = 0;
  std::optional<std::vector<TokenId>> expected;
};

struct Unit {
  std::size_t clip = 0;
  std::string language;
  std::vector<TokenId> prompt;
  int max_tokens = 0;
  std::vector<Piece> windows;  ///< one or more
};

/// Where a lane's threads go.
struct Cores {
  std::vector<int> target;
  std::vector<int> draft;
  bool pin = true;
};

struct Contender {
  std::string method;
  std::optional<std::size_t> drafter;
  bool oracle = false;
  std::size_t budget = 0;
  std::size_t windows = 1;
  bool exact = true;
  bool promised = true;
  bool reference = false;
  bool baseline = false;
  bool adaptive = false;
  bool calibrated = false;
  std::map<int, double> alone_steps;
  std::map<int, double> drafted_steps;
  double encode_base = 0;
  double encode_per_second = 0;
  Cores cores;
  std::optional<std::vector<std::size_t>> units;  ///< nullopt: all of them

  bool TakesPartIn(std::size_t unit) const;
};

struct Effort {
  double seconds = 0;
  std::vector<int> rows;
  std::size_t batches = 1;
  std::size_t batch = 4;
  std::vector<double> audio;
};

struct Job {
  enum class Kind : std::uint8_t { kBench, kProfile, kDrafts };

  Kind kind = Kind::kBench;
  std::filesystem::path library;
  std::filesystem::path target;
  double deadline = 0;
  std::size_t repeats = 1;
  bool spans = false;
  bool drafts = false;
  double cool_celsius = 0;
  double cool_seconds = 0;
  Effort effort;
  std::vector<Drafter> drafters;
  std::vector<Clip> clips;
  std::vector<Unit> units;
  std::vector<Contender> contenders;
  std::vector<Cores> layouts;

  /// Reads a job and checks that its numbers fit each other. `name` is for messages. Throws Error,
  /// naming the line.
  static Job Read(std::istream& text, const std::string& name);
};

}  // namespace as2d::runner
