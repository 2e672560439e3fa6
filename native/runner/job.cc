#include "job.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <locale>
#include <sstream>
#include <string_view>
#include <tuple>
#include <utility>

#include "as2d/engine.h"
#include "as2d/error.h"

namespace as2d::runner {
namespace {

/// One value, and where it stands.
class Value {
 public:
  Value(std::string text, std::string place) : text_(std::move(text)), place_(std::move(place)) {}

  const std::string& text() const { return text_; }

  template <typename Number>
  Number As(Number least = 0, Number most = std::numeric_limits<Number>::max()) const {
    return Parse<Number>(text_, least, most);
  }
  template <typename Number>
  std::vector<Number> ListOf(Number least = 0) const {
    std::vector<Number> list;
    for (const std::string_view word : Words()) {
      list.push_back(Parse<Number>(word, least, std::numeric_limits<Number>::max()));
    }
    return list;
  }
  bool Truth() const {
    if (text_ != "yes" && text_ != "no") Refuse("is neither yes nor no");
    return text_ == "yes";
  }
  std::map<int, double> Steps() const {
    std::map<int, double> steps;
    for (const std::string_view word : Words()) {
      const std::size_t equals = word.find('=');
      if (equals == std::string_view::npos) Refuse("is not a list of ROWS=SECONDS");
      steps[Parse<int>(word.substr(0, equals), 1, 1 << 20)] =
          Parse<double>(word.substr(equals + 1), 0, std::numeric_limits<double>::max());
    }
    return steps;
  }
  /// Two numbers.
  template <typename Number>
  std::pair<Number, Number> Pair() const {
    const std::vector<Number> numbers = ListOf<Number>();
    if (numbers.size() != 2) Refuse("is not two numbers");
    return {numbers[0], numbers[1]};
  }
  [[noreturn]] void Refuse(const std::string& what) const {
    throw Error(place_ + ": '" + text_ + "' " + what);
  }

 private:
  std::vector<std::string_view> Words() const {
    std::vector<std::string_view> words;
    std::string_view rest = text_;
    while (!rest.empty()) {
      const std::size_t space = std::min(rest.find(' '), rest.size());
      if (space > 0) words.push_back(rest.substr(0, space));
      rest.remove_prefix(std::min(space + 1, rest.size()));
    }
    return words;
  }
  template <typename Number>
  Number Parse(std::string_view word, Number least, Number most) const {
    Number number{};
    // Not from_chars: the C++ libraries of devices lack it for floating point.
    std::istringstream stream{std::string(word)};
    stream.imbue(std::locale::classic());
    if (word.empty() || !(stream >> number) ||
        stream.peek() != std::istringstream::traits_type::eof()) {
      Refuse("is not a number");
    }
    if (!(number >= least && number <= most) || (least >= 0 && word.front() == '-')) {
      Refuse("is a number that cannot be here");
    }
    return number;
  }

  const std::string text_;
  const std::string place_;
};

using Fields = std::map<std::string, std::function<void(const Value&)>, std::less<>>;

/// The fields of `cores`, which stand in several sections.
void AddCores(Fields& fields, Cores& cores) {
  fields["target_cores"] = [&](const Value& v) { cores.target = v.ListOf<int>(); };
  fields["draft_cores"] = [&](const Value& v) { cores.draft = v.ListOf<int>(); };
  fields["pin"] = [&](const Value& v) { cores.pin = v.Truth(); };
}

Fields FieldsOfJob(Job& job) {
  return {
      {"kind",
       [&](const Value& v) {
         if (v.text() == "bench") {
           job.kind = Job::Kind::kBench;
         } else if (v.text() == "profile") {
           job.kind = Job::Kind::kProfile;
         } else if (v.text() == "drafts") {
           job.kind = Job::Kind::kDrafts;
         } else {
           v.Refuse("is no kind of job; there are bench, profile and drafts");
         }
       }},
      {"library", [&](const Value& v) { job.library = v.text(); }},
      {"target", [&](const Value& v) { job.target = v.text(); }},
      {"deadline", [&](const Value& v) { job.deadline = v.As<double>(); }},
      {"repeats", [&](const Value& v) { job.repeats = v.As<std::size_t>(); }},
      {"spans", [&](const Value& v) { job.spans = v.Truth(); }},
      {"drafts", [&](const Value& v) { job.drafts = v.Truth(); }},
      {"cool_celsius", [&](const Value& v) { job.cool_celsius = v.As<double>(); }},
      {"cool_seconds", [&](const Value& v) { job.cool_seconds = v.As<double>(); }},
      {"seconds", [&](const Value& v) { job.effort.seconds = v.As<double>(); }},
      {"rows", [&](const Value& v) { job.effort.rows = v.ListOf<int>(1); }},
      {"batches", [&](const Value& v) { job.effort.batches = v.As<std::size_t>(1); }},
      {"batch", [&](const Value& v) { job.effort.batch = v.As<std::size_t>(1); }},
      {"audio", [&](const Value& v) { job.effort.audio = v.ListOf<double>(); }},
  };
}

Fields FieldsOfUnit(Unit& unit) {
  return {
      {"clip", [&](const Value& v) { unit.clip = v.As<std::size_t>(); }},
      {"language", [&](const Value& v) { unit.language = v.text(); }},
      {"prompt", [&](const Value& v) { unit.prompt = v.ListOf<TokenId>(); }},
      {"max_tokens", [&](const Value& v) { unit.max_tokens = v.As<int>(); }},
      {"window",
       [&](const Value& v) {
         const auto [first, count] = v.Pair<std::size_t>();
         unit.windows.push_back({first, count, std::nullopt});
       }},
      {"expected",
       [&](const Value& v) {
         if (unit.windows.empty()) v.Refuse("comes before any window");
         unit.windows.back().expected = v.ListOf<TokenId>();
       }},
  };
}

Fields FieldsOfContender(Contender& contender) {
  Fields fields = {
      {"method",
       [&](const Value& v) {
         if (!MethodOf(v.text())) v.Refuse("is no method");
         contender.method = v.text();
       }},
      {"drafter",
       [&](const Value& v) {
         contender.oracle = v.text() == "oracle";
         if (!contender.oracle) contender.drafter = v.As<std::size_t>();
       }},
      {"budget", [&](const Value& v) { contender.budget = v.As<std::size_t>(); }},
      {"windows", [&](const Value& v) { contender.windows = v.As<std::size_t>(1); }},
      {"exact", [&](const Value& v) { contender.exact = v.Truth(); }},
      {"promised", [&](const Value& v) { contender.promised = v.Truth(); }},
      {"reference", [&](const Value& v) { contender.reference = v.Truth(); }},
      {"baseline", [&](const Value& v) { contender.baseline = v.Truth(); }},
      {"adaptive", [&](const Value& v) { contender.adaptive = v.Truth(); }},
      {"calibrated", [&](const Value& v) { contender.calibrated = v.Truth(); }},
      {"alone_steps", [&](const Value& v) { contender.alone_steps = v.Steps(); }},
      {"drafted_steps", [&](const Value& v) { contender.drafted_steps = v.Steps(); }},
      {"encode",
       [&](const Value& v) {
         std::tie(contender.encode_base, contender.encode_per_second) = v.Pair<double>();
       }},
      {"units", [&](const Value& v) { contender.units = v.ListOf<std::size_t>(); }},
  };
  AddCores(fields, contender.cores);
  return fields;
}

Fields FieldsOfSection(Job& job, const Value& section) {
  const std::string& name = section.text();
  if (name == "[drafter]") {
    Drafter& drafter = job.drafters.emplace_back();
    return {{"name", [&](const Value& v) { drafter.name = v.text(); }},
            {"folder", [&](const Value& v) { drafter.folder = v.text(); }}};
  }
  if (name == "[clip]") {
    Clip& clip = job.clips.emplace_back();
    return {{"file", [&](const Value& v) { clip.file = v.text(); }},
            {"format", [&](const Value& v) {
               if (v.text() != "f32" && v.text() != "s16") v.Refuse("is neither f32 nor s16");
               clip.is_s16 = v.text() == "s16";
             }}};
  }
  if (name == "[unit]") return FieldsOfUnit(job.units.emplace_back());
  if (name == "[contender]") return FieldsOfContender(job.contenders.emplace_back());
  if (name == "[layout]") {
    Fields fields;
    AddCores(fields, job.layouts.emplace_back());
    return fields;
  }
  section.Refuse("is no section");
}

void ReadLine(Job& job, const std::string& line, const std::string& place, Fields& fields) {
  if (line.empty() || line.front() == '#') return;
  if (line.front() == '[') {
    fields = FieldsOfSection(job, Value(line, place));
    return;
  }
  const std::size_t colon = line.find(':');
  if (colon == std::string::npos) throw Error(place + ": '" + line + "' is not 'key: value'");
  const std::string key = line.substr(0, colon);
  const auto field = fields.find(key);
  if (field == fields.end()) throw Error(place + ": '" + key + "' is no key of this section");
  // An empty value may have lost its blank.
  field->second(Value(line.substr(std::min(line.size(), colon + 2)), place + ": " + key));
}

/// Complains about a job, by its name.
class Checker {
 public:
  Checker(const Job& job, const std::string& name) : job_(job), name_(name) {}

  void Check() const {
    Require(!job_.library.empty(), "needs 'library'");
    Require(!job_.target.empty() || job_.kind == Job::Kind::kDrafts, "needs 'target'");
    Require(!job_.units.empty(), "needs a [unit]");
    for (const Drafter& drafter : job_.drafters) {
      Require(!drafter.folder.empty(), "has a [drafter] without 'folder'");
    }
    for (const Clip& clip : job_.clips) Require(!clip.file.empty(), "has a [clip] without 'file'");
    for (const Unit& unit : job_.units) {
      Require(unit.clip < job_.clips.size(), "has a [unit] of a clip that is not there");
      Require(!unit.windows.empty(), "has a [unit] without 'window'");
    }
    switch (job_.kind) {
      case Job::Kind::kBench:
        return CheckBench();
      case Job::Kind::kProfile:
        return CheckProfile();
      case Job::Kind::kDrafts:
        Require(!job_.drafters.empty(), "needs a [drafter]");
    }
  }

 private:
  void CheckBench() const {
    const auto count = [&](bool Contender::* flag) {
      return std::ranges::count(job_.contenders, true, flag);
    };
    Require(count(&Contender::reference) == 1, "needs one [contender] with 'reference: yes'");
    Require(count(&Contender::baseline) == 1, "needs one [contender] with 'baseline: yes'");
    for (const Contender& contender : job_.contenders) {
      Require(!contender.method.empty(), "has a [contender] without 'method'");
      Require(contender.drafter.value_or(0) < std::max<std::size_t>(1, job_.drafters.size()) &&
                  (!contender.drafter || !job_.drafters.empty()),
              "has a [contender] with a drafter that is not there");
      Require(!contender.units ||
                  std::ranges::all_of(*contender.units,
                                      [&](std::size_t unit) { return unit < job_.units.size(); }),
              "has a [contender] with a unit that is not there");
      Require(!contender.units || !(contender.reference || contender.baseline),
              "has a reference or baseline with 'units'; both take part in all");
      CheckCores(contender.cores);
    }
  }
  void CheckProfile() const {
    Require(!job_.layouts.empty(), "needs a [layout]");
    Require(!job_.effort.rows.empty(), "needs 'rows'");
    Require(!job_.effort.audio.empty(), "needs 'audio'");
    for (const Cores& layout : job_.layouts) {
      CheckCores(layout);
      Require(layout.draft.empty() || !job_.drafters.empty(),
              "has a [layout] with draft_cores but no [drafter]");
    }
  }
  void CheckCores(const Cores& cores) const {
    Require(!cores.target.empty(), "needs 'target_cores' in each [contender] and [layout]");
  }
  void Require(bool holds, const char* what) const {
    if (!holds) throw Error(name_ + ": " + what);
  }

  const Job& job_;
  const std::string& name_;
};

}  // namespace

bool Contender::TakesPartIn(std::size_t unit) const {
  return !units || std::ranges::find(*units, unit) != units->end();
}

Job Job::Read(std::istream& text, const std::string& name) {
  Job job;
  std::string line;
  if (!std::getline(text, line)) throw Error(name + ": cannot be read, or is empty");
  if (line != kJobFormat) {
    throw Error(name + ": is not a job of this version (its first line is not '" + kJobFormat +
                "'); use the runner and the as2d of one version");
  }
  Fields fields = FieldsOfJob(job);
  for (int number = 2; std::getline(text, line); ++number) {
    ReadLine(job, line, name + ":" + std::to_string(number), fields);
  }
  Checker(job, name).Check();
  return job;
}

}  // namespace as2d::runner
