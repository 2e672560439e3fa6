#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "as2d/error.h"
#include "job.h"

namespace as2d::runner {
namespace {

constexpr const char* kBench = R"(as2d-job 1
# a comment
kind: bench
library: lib dir/libonnxruntime.so
target: bundles/one
deadline: 2.5
repeats: 3
spans: yes

[drafter]
name: a: b
folder: bundles/two
[clip]
file: a.pcm
format: s16
[unit]
clip: 0
language: en
prompt: 1 2  3
max_tokens: 40
window: 0 16000
window: 16000 8000
expected: 5 6
[contender]
method: target
reference: yes
baseline: yes
target_cores: 4 0
draft_cores:
[contender]
method: as2d
drafter: 0
budget: 8
adaptive: yes
alone_steps: 1=0.5 2=1e-3
encode: 0.25 0.5
target_cores: 4
draft_cores: 5
pin: no
units: 0
[contender]
method: as2d
drafter: oracle
target_cores: 4
units:
)";

Job Read(const std::string& text) {
  std::istringstream stream(text);
  return Job::Read(stream, "my.job");
}

/// The job with a line replaced, or with one more at its end.
std::string Problem(const std::string& line, const std::string& other) {
  std::string text = kBench;
  if (const std::size_t at = text.find(line); at != std::string::npos) {
    text.replace(at, line.size(), other);
  }
  try {
    Read(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

TEST(RunnerJob, ReadsABench) {
  const Job job = Read(kBench);
  EXPECT_EQ(job.kind, Job::Kind::kBench);
  EXPECT_EQ(job.library, "lib dir/libonnxruntime.so");
  EXPECT_EQ(job.deadline, 2.5);
  EXPECT_EQ(job.repeats, 3U);
  EXPECT_TRUE(job.spans);
  EXPECT_EQ(job.drafters.at(0).name, "a: b");
  EXPECT_TRUE(job.clips.at(0).is_s16);
  const Unit& unit = job.units.at(0);
  EXPECT_EQ(unit.prompt, (std::vector<TokenId>{1, 2, 3}));
  ASSERT_EQ(unit.windows.size(), 2U);
  EXPECT_FALSE(unit.windows[0].expected);
  EXPECT_EQ(unit.windows[1].first, 16000U);
  EXPECT_EQ(unit.windows[1].expected, (std::vector<TokenId>{5, 6}));
  ASSERT_EQ(job.contenders.size(), 3U);
  const Contender& reference = job.contenders[0];
  EXPECT_TRUE(reference.reference && reference.exact && reference.cores.pin);
  EXPECT_EQ(reference.cores.target, (std::vector{4, 0}));
  EXPECT_TRUE(reference.cores.draft.empty());
  EXPECT_TRUE(reference.TakesPartIn(0));
  const Contender& drafted = job.contenders[1];
  EXPECT_EQ(drafted.drafter, 0U);
  EXPECT_FALSE(drafted.cores.pin);
  EXPECT_EQ(drafted.alone_steps, (std::map<int, double>{{1, 0.5}, {2, 1e-3}}));
  EXPECT_EQ(drafted.encode_per_second, 0.5);
  EXPECT_TRUE(job.contenders[2].oracle);
  EXPECT_FALSE(job.contenders[2].TakesPartIn(0));
}

TEST(RunnerJob, NamesTheLineThatIsWrong) {
  EXPECT_EQ(Problem("kind: bench", "kind: race"),
            "my.job:3: kind: 'race' is no kind of job; there are bench, profile and drafts");
  EXPECT_EQ(Problem("repeats: 3", "repeats: -3"),
            "my.job:7: repeats: '-3' is a number that cannot be here");
  EXPECT_EQ(Problem("repeats: 3", "repeats: 3x"), "my.job:7: repeats: '3x' is not a number");
  EXPECT_EQ(Problem("repeats: 3", "repeat: 3"), "my.job:7: 'repeat' is no key of this section");
  EXPECT_EQ(Problem("repeats: 3", "repeats 3"), "my.job:7: 'repeats 3' is not 'key: value'");
  EXPECT_EQ(Problem("spans: yes", "spans: true"), "my.job:8: spans: 'true' is neither yes nor no");
  EXPECT_EQ(Problem("[drafter]", "[draft]"), "my.job:10: '[draft]' is no section");
  EXPECT_EQ(Problem("window: 0 16000", "window: 0"), "my.job:21: window: '0' is not two numbers");
  EXPECT_EQ(Problem("method: as2d", "method: magic"), "my.job:31: method: 'magic' is no method");
  EXPECT_NE(Problem("alone_steps: 1=0.5", "alone_steps: 1:0.5").find("ROWS=SECONDS"),
            std::string::npos);
  EXPECT_NE(Problem("as2d-job 1", "as2d-job 2").find("not a job of this version"),
            std::string::npos);
}

TEST(RunnerJob, ItsNumbersFitEachOther) {
  EXPECT_EQ(Problem("clip: 0", "clip: 1"), "my.job: has a [unit] of a clip that is not there");
  EXPECT_EQ(Problem("drafter: 0", "drafter: 1"),
            "my.job: has a [contender] with a drafter that is not there");
  EXPECT_EQ(Problem("units: 0", "units: 1"),
            "my.job: has a [contender] with a unit that is not there");
  EXPECT_EQ(Problem("reference: yes", "reference: no"),
            "my.job: needs one [contender] with 'reference: yes'");
  EXPECT_EQ(Problem("reference: yes", "reference: yes\nunits: 0"),
            "my.job: has a reference or baseline with 'units'; both take part in all");
  EXPECT_EQ(Problem("target_cores: 4 0", "pin: yes"),
            "my.job: needs 'target_cores' in each [contender] and [layout]");
  EXPECT_EQ(Problem("kind: bench", "kind: profile"), "my.job: needs a [layout]");
}

}  // namespace
}  // namespace as2d::runner
