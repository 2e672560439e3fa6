// The extension module as2d_cli._native: the engine as plain Python values. What it returns is
// shaped into classes by as2d_cli/decoding.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "as2d/decode/replay.h"
#include "as2d/engine.h"
#include "as2d/error.h"
#include "as2d/kernels/operators.h"
#include "as2d/platform/cpu_mask.h"
#include "as2d/platform/system_roots.h"
#include "as2d/platform/temperatures.h"
#include "as2d/platform/topology.h"
#include "as2d/text/retokenizer.h"
#include "as2d/text/vocabulary.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace as2d {
namespace {

using Samples = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

std::span<const float> SpanOf(const Samples& samples) { return {samples.data(), samples.size()}; }

const char* NameOf(Event::Kind kind) {
  switch (kind) {
    case Event::Kind::kEncoded:
      return "encoded";
    case Event::Kind::kTokensCommitted:
      return "tokens_committed";
    case Event::Kind::kWindowFinished:
      return "window_finished";
    case Event::Kind::kDraftAdvanced:
      return "draft_advanced";
    case Event::Kind::kLaneChanged:
      return "lane_changed";
    case Event::Kind::kDraftingChanged:
      return "drafting_changed";
    case Event::Kind::kDrafterLost:
      return "drafter_lost";
    case Event::Kind::kRunFinished:
      return "run_finished";
  }
  return "";
}

const char* NameOf(FinishReason reason) {
  switch (reason) {
    case FinishReason::kEnd:
      return "end";
    case FinishReason::kLimit:
      return "limit";
    case FinishReason::kContext:
      return "context";
    case FinishReason::kCancelled:
      return "cancelled";
  }
  return "";
}

/// A message as a Python string, even where it names a path that is not UTF-8.
nb::object TextOf(std::string_view message) {
  return nb::steal(PyUnicode_DecodeUTF8(message.data(), static_cast<Py_ssize_t>(message.size()),
                                        "backslashreplace"));
}

/// Makes a Python exception of a C++ one.
template <typename Exception>
void Translate(nb::module_& module, const char* name) {
  const nb::exception<Exception> type(module, name);
  // Tried before the one that nanobind has just registered, which takes UTF-8 alone.
  nb::register_exception_translator(
      [](const std::exception_ptr& thrown, void* python_type) {
        try {
          std::rethrow_exception(thrown);
        } catch (const Exception& error) {
          PyErr_SetObject(static_cast<PyObject*>(python_type), TextOf(error.what()).ptr());
        }
      },
      type.ptr());
}

/// A copy in memory of Python's own: [lines, width].
nb::object ArrayOf(const std::vector<float>& lines, std::size_t width) {
  auto* const copy = new std::vector<float>(lines);
  const nb::capsule owner(copy,
                          [](void* p) noexcept { delete static_cast<std::vector<float>*>(p); });
  const std::size_t count = width == 0 ? 0 : copy->size() / width;
  return nb::cast(nb::ndarray<nb::numpy, float, nb::ndim<2>>(copy->data(), {count, width}, owner));
}

nb::dict DictOf(const Event& event) {
  nb::dict dict;
  dict["kind"] = NameOf(event.kind);
  dict["seconds"] = event.seconds;
  dict["window"] = event.window;
  switch (event.kind) {
    case Event::Kind::kEncoded:
      dict["encoding"] = ArrayOf(event.encoding, static_cast<std::size_t>(event.count));
      break;
    case Event::Kind::kTokensCommitted:
      dict["tokens"] = event.tokens;
      break;
    case Event::Kind::kWindowFinished:
      dict["tokens"] = event.tokens;
      dict["reason"] = NameOf(event.reason);
      dict["duration"] = event.duration;
      dict["log_probability"] = event.log_probability;
      dict["no_speech"] = event.no_speech;
      dict["times"] = event.times;
      dict["draft"] = event.draft;
      break;
    case Event::Kind::kDraftAdvanced:
      dict["count"] = event.count;
      dict["finished"] = event.finished;
      break;
    case Event::Kind::kLaneChanged:
      dict["lane"] = NameOf(event.lane);
      dict["activity"] = NameOf(event.activity);
      break;
    case Event::Kind::kDraftingChanged:
      dict["on"] = event.finished;
      dict["message"] = TextOf(event.message);
      break;
    case Event::Kind::kDrafterLost:
      dict["message"] = TextOf(event.message);
      break;
    case Event::Kind::kRunFinished:
      dict["cancelled"] = !event.finished;
      dict["message"] = TextOf(event.message);
      break;
  }
  return dict;
}

nb::dict DictOf(const Run& run) {
  const Counters& counters = run.counters();
  nb::dict steps;
  for (std::size_t i = 1; i < counters.steps.size(); ++i) {
    if (const std::int64_t count = counters.steps[i].Get(); count > 0) steps[nb::int_(i)] = count;
  }
  const auto seconds = [](const Counter& nanoseconds) {
    return static_cast<double>(nanoseconds.Get()) * 1e-9;
  };
  const PhaseTimes& times = counters.nanoseconds;
  nb::dict phases;
  phases["encode"] = seconds(times.encode);
  phases["prompt"] = seconds(times.prompt);
  phases["decode"] = seconds(times.decode);
  phases["draft_encode"] = seconds(times.draft_encode);
  phases["draft_decode"] = seconds(times.draft_decode);
  phases["wall"] = run.wall_seconds();
  nb::dict dict;
  dict["windows"] = counters.windows.Get();
  dict["committed"] = counters.committed.Get();
  dict["verify_steps"] = steps;
  dict["alone_steps"] = counters.steps[0].Get();
  dict["proposed"] = counters.proposed.Get();
  dict["accepted"] = counters.accepted.Get();
  dict["realignments"] = counters.realignments.Get();
  dict["drafted"] = counters.drafted.Get();
  dict["stale_drafts"] = counters.stale_drafts.Get();
  dict["lead_total"] = counters.lead_total.Get();
  dict["seconds"] = phases;
  return dict;
}

nb::dict DictOf(const LaneReport& report) {
  nb::list threads;
  for (const WorkerReport& worker : report.threads) {
    nb::dict thread;
    thread["name"] = worker.name;
    thread["requested"] = worker.requested.ToString();
    thread["actual"] = worker.actual.ToString();
    thread["refused"] = worker.refused;
    threads.append(thread);
  }
  nb::dict dict;
  dict["cores"] = report.cores;
  dict["threads"] = threads;
  return dict;
}

nb::object ListOf(const std::optional<CpuMask>& mask) {
  return mask ? nb::cast(mask->Cores()) : nb::none();
}

nb::dict DictOf(const Topology& topology) {
  nb::list clusters;
  for (const CoreCluster& cluster : topology.clusters) {
    nb::dict entry;
    entry["cores"] = cluster.cores;
    entry["capacity"] = cluster.capacity;
    entry["max_khz"] = cluster.max_khz;
    entry["model"] = TextOf(cluster.model);
    entry["governor"] = TextOf(cluster.governor);
    entry["features"] = cluster.features;
    clusters.append(entry);
  }
  nb::list caches;
  for (const Cache& cache : topology.caches) {
    nb::dict entry;
    entry["level"] = cache.level;
    entry["kind"] = TextOf(cache.kind);
    entry["bytes"] = cache.bytes;
    entry["cores"] = cache.cores.Cores();
    caches.append(entry);
  }
  nb::dict dict;
  dict["clusters"] = clusters;
  dict["source"] = NameOf(topology.source);
  dict["quota"] = topology.cpu_quota.value_or(0.0);
  dict["quota_known"] = topology.cpu_quota.has_value();
  dict["can_pin"] = topology.can_pin;
  dict["allowed"] = ListOf(topology.allowed);
  dict["offline"] = ListOf(topology.offline);
  dict["siblings"] = topology.siblings;
  dict["caches"] = caches;
  return dict;
}

SystemRoots RootsOf(const std::optional<std::filesystem::path>& root) {
  return root ? SystemRoots::Below(*root) : SystemRoots();
}

/// A retokenizer with the vocabularies it looks at.
class Crossing {
 public:
  Crossing(const std::filesystem::path& source, const std::filesystem::path& target)
      : source_(Vocabulary::Load(source.string())),
        target_(Vocabulary::Load(target.string())),
        tokenizer_(target_),
        retokenizer_(source_, tokenizer_) {}

  std::vector<TokenId> Cut(const std::vector<TokenId>& tokens) {
    std::vector<TokenId> cut;
    retokenizer_.Reset();
    for (const TokenId token : tokens) retokenizer_.Push(token, &cut);
    retokenizer_.Finish(&cut);
    return cut;
  }

 private:
  const Vocabulary source_;
  const Vocabulary target_;
  const WordTokenizer tokenizer_;
  Retokenizer retokenizer_;
};

ScriptedDrafter::Ending EndingOf(const std::string& name) {
  if (name == "end") return ScriptedDrafter::Ending::kEnd;
  if (name == "throw") return ScriptedDrafter::Ending::kThrow;
  if (name == "hang") return ScriptedDrafter::Ending::kHang;
  if (name == "never") return ScriptedDrafter::Ending::kNever;
  throw Error("no ending '" + name + "'; there are end, throw, hang and never");
}

StepCosts CostsOf(const nb::dict& costs) {
  using Steps = std::map<int, double>;
  StepCosts made;
  made.alone = CostCurve(nb::cast<Steps>(costs["alone_steps"]));
  made.drafted = CostCurve(nb::cast<Steps>(costs["drafted_steps"]));
  made.encode_base = nb::cast<double>(costs["encode_base"]);
  made.encode_per_second = nb::cast<double>(costs["encode_per_second"]);
  return made;
}

std::unique_ptr<Run> Start(Engine& engine, const std::string& name, std::size_t budget, bool exact,
                           bool tell_encodings, std::size_t windows, bool adaptive,
                           const std::optional<nb::dict>& costs) {
  const std::optional<Method> method = MethodOf(name);
  if (!method) throw Error("no method '" + name + "'");
  RunOptions options;
  options.exact = exact;
  options.tell_encodings = tell_encodings;
  options.batch = windows;
  options.adaptive = adaptive;
  if (costs) options.costs = CostsOf(*costs);
  return engine.Start(*method, budget, std::move(options));
}

nb::dict DictOf(const DraftTiming& timing) {
  nb::dict dict;
  dict["encode"] = timing.encode;
  dict["steps"] = timing.steps;
  dict["tokens"] = timing.tokens;
  dict["complete"] = timing.complete;
  return dict;
}

Window DraftedWindow(const Samples& samples, std::string language) {
  Window window;
  window.samples.assign(samples.data(), samples.data() + samples.size());
  window.language = std::move(language);
  return window;
}

std::chrono::microseconds Microseconds(double seconds) {
  return std::chrono::microseconds(static_cast<std::int64_t>(seconds * 1e6));
}

}  // namespace
}  // namespace as2d

NB_MODULE(_native, module) {
  using namespace as2d;

  Translate<Error>(module, "NativeError");
  Translate<Cancelled>(module, "NativeCancelledError");

  module.def("kernel_name", [] { return std::string(KernelName()); });
  module.def(
      "draft_alone",
      [](const std::filesystem::path& ort_library, const std::filesystem::path& drafter,
         const Samples& samples, std::string language,
         const std::optional<std::filesystem::path>& target) {
        Window window = DraftedWindow(samples, std::move(language));
        Said said;
        {
          const nb::gil_scoped_release release;
          said = DraftAlone(ort_library, drafter, std::move(window), target.value_or(""));
        }
        return std::pair(std::move(said.tokens), nb::bytes(said.text.data(), said.text.size()));
      },
      "ort_library"_a, "drafter"_a, "samples"_a, "language"_a, "target"_a = nb::none());
  module.def(
      "topology",
      [](const std::optional<std::filesystem::path>& root,
         const std::optional<std::string>& allowed) {
        std::optional<CpuMask> mask;
        if (allowed) {
          mask = CpuMask::Parse(*allowed);
          if (!mask) throw Error("'" + *allowed + "' is no list of cores");
        }
        return DictOf(ReadTopology(RootsOf(root), mask));
      },
      "root"_a = nb::none(), "allowed"_a = nb::none());
  module.def(
      "temperatures",
      [](const std::optional<std::filesystem::path>& root) {
        nb::list list;
        for (const Temperature& sensor : ReadTemperatures(RootsOf(root))) {
          list.append(nb::make_tuple(TextOf(sensor.sensor), sensor.celsius));
        }
        return list;
      },
      "root"_a = nb::none());

  nb::class_<Run>(module, "Run")
      .def(
          "submit",
          [](Run& run, std::int64_t index, const Samples& samples, std::vector<TokenId> prompt,
             int max_tokens, std::string language, bool translate, bool timestamps,
             bool token_times, float temperature, std::uint32_t seed,
             std::vector<TokenId> draft_prompt, std::vector<TokenId> source) {
            Window window;
            window.index = index;
            window.samples.assign(samples.data(), samples.data() + samples.size());
            window.prompt = std::move(prompt);
            window.max_tokens = max_tokens;
            window.language = std::move(language);
            window.translate = translate;
            window.timestamps = timestamps;
            window.token_times = token_times;
            window.temperature = temperature;
            window.seed = seed;
            window.draft_prompt = std::move(draft_prompt);
            window.source = std::move(source);
            run.Submit(std::move(window));
          },
          "index"_a, "samples"_a, "prompt"_a, "max_tokens"_a, "language"_a = "",
          "translate"_a = false, "timestamps"_a = false, "token_times"_a = false,
          "temperature"_a = 0.0F, "seed"_a = 0, "draft_prompt"_a = std::vector<TokenId>(),
          "source"_a = std::vector<TokenId>())
      .def("finish", &Run::Finish)
      .def("cancel", &Run::Cancel)
      .def("poll",
           [](Run& run, double timeout) {
             std::vector<Event> events;
             {
               const nb::gil_scoped_release release;
               events = run.Poll(std::chrono::duration<double>(timeout));
             }
             nb::list list;
             for (const Event& event : events) list.append(DictOf(event));
             return list;
           })
      .def("counters", [](const Run& run) { return DictOf(run); });

  nb::class_<Crossing>(module, "Retokenizer")
      .def(nb::init<const std::filesystem::path&, const std::filesystem::path&>(), "source"_a,
           "target"_a)
      .def("cut", &Crossing::Cut);

  nb::class_<TokenKeys>(module, "Replay")
      .def(
          "__init__",
          [](TokenKeys* self, const std::filesystem::path& vocabulary) {
            new (self) TokenKeys(Vocabulary::Load(vocabulary.string()));
          },
          "vocabulary"_a)
      .def(
          "steps",
          [](const TokenKeys& keys, const std::vector<TokenId>& text,
             const std::vector<TokenId>& draft, TokenId end_token, std::size_t budget) {
            const std::shared_ptr<const TokenKeys> borrowed(std::shared_ptr<void>(), &keys);
            return ReplaySteps(text, draft, end_token, budget, borrowed);
          },
          "text"_a, "draft"_a, "end_token"_a, "budget"_a)
      .def(
          "trace",
          [](const TokenKeys& keys, const std::vector<TokenId>& text,
             const std::vector<TokenId>& draft, TokenId end_token) {
            std::vector<std::pair<std::size_t, std::size_t>> trace;
            for (const auto& [place, run] : ReplayTrace(text, draft, end_token, keys)) {
              trace.emplace_back(place, run);
            }
            return trace;
          },
          "text"_a, "draft"_a, "end_token"_a);

  nb::class_<ScriptedDrafter>(module, "ScriptedDrafter")
      .def(
          "__init__",
          [](ScriptedDrafter* self, Script script, const std::string& ending, double token_seconds,
             double encode_seconds) {
            new (self)
                ScriptedDrafter(std::move(script), {.ending = EndingOf(ending),
                                                    .token_time = Microseconds(token_seconds),
                                                    .encode_time = Microseconds(encode_seconds)});
          },
          "script"_a, "ending"_a = "end", "token_seconds"_a = 0.0, "encode_seconds"_a = 0.0)
      .def("release", &ScriptedDrafter::Release);

  nb::class_<Engine>(module, "Engine")
      .def(
          "__init__",
          [](Engine* self, const std::filesystem::path& ort_library,
             const std::filesystem::path& target, std::vector<int> cores, int threads) {
            const nb::gil_scoped_release release;
            new (self) Engine(ort_library, target, {std::move(cores), threads});
          },
          "ort_library"_a, "target"_a, "cores"_a, "threads"_a)
      .def_static(
          "scripted",
          [](Script script, double step_seconds, double encode_seconds) {
            ScriptedTarget::Options options;
            options.step_time = Microseconds(step_seconds);
            options.encode_time = Microseconds(encode_seconds);
            return std::make_unique<Engine>(std::move(script), options);
          },
          "script"_a, "step_seconds"_a = 0.0, "encode_seconds"_a = 0.0)
      .def(
          "load_drafter",
          [](Engine& engine, const std::filesystem::path& drafter, std::vector<int> cores,
             int threads) {
            const nb::gil_scoped_release release;
            engine.LoadDrafter(drafter, {std::move(cores), threads});
          },
          "drafter"_a, "cores"_a, "threads"_a)
      .def("set_drafter", &Engine::SetDrafter)
      .def("has_drafter", &Engine::has_drafter)
      .def("start", &Start, "method"_a, "budget"_a, "exact"_a, "tell_encodings"_a = false,
           "windows"_a = 1, "adaptive"_a = false, "costs"_a = nb::none(), nb::keep_alive<0, 1>())
      .def("language_probabilities",
           [](Engine& engine, const Samples& samples) {
             const nb::gil_scoped_release release;
             return engine.LanguageProbabilities(SpanOf(samples));
           })
      .def(
          "time_encode",
          [](Engine& engine, double seconds_of_audio, std::size_t repeats, bool lend,
             double most_seconds) {
            const nb::gil_scoped_release release;
            return engine.TimeEncode(seconds_of_audio, repeats,
                                     {.lend = lend, .most_seconds = most_seconds});
          },
          "seconds_of_audio"_a, "repeats"_a, "lend"_a = true, "most_seconds"_a = 30.0)
      .def(
          "time_steps",
          [](Engine& engine, const std::vector<int>& rows, std::size_t repeats, bool exact,
             bool lend, double most_seconds) {
            const nb::gil_scoped_release release;
            return engine.TimeSteps(rows, repeats,
                                    {.exact = exact, .lend = lend, .most_seconds = most_seconds});
          },
          "rows"_a, "repeats"_a, "exact"_a = true, "lend"_a = true, "most_seconds"_a = 30.0)
      .def(
          "time_draft",
          [](Engine& engine, const Samples& samples, std::string language, bool lend,
             double most_seconds) {
            const Window window = DraftedWindow(samples, std::move(language));
            DraftTiming timing;
            {
              const nb::gil_scoped_release release;
              timing = engine.TimeDraft(window, {.lend = lend, .most_seconds = most_seconds});
            }
            return DictOf(timing);
          },
          "samples"_a, "language"_a = "", "lend"_a = true, "most_seconds"_a = 30.0)
      .def(
          "time_together",
          [](Engine& engine, const std::vector<int>& rows, double seconds, const Samples& samples,
             std::string language, bool exact) {
            const Window window = DraftedWindow(samples, std::move(language));
            TogetherTiming timing;
            {
              const nb::gil_scoped_release release;
              timing = engine.TimeTogether(rows, seconds, window, exact);
            }
            nb::list drafts;
            for (const DraftTiming& draft : timing.drafts) drafts.append(DictOf(draft));
            nb::dict dict;
            dict["steps"] = timing.steps;
            dict["drafts"] = drafts;
            return dict;
          },
          "rows"_a, "seconds"_a, "samples"_a, "language"_a = "", "exact"_a = true)
      .def("cancel_timing", &Engine::CancelTiming)
      .def("lanes", [](const Engine& engine) {
        nb::dict dict;
        dict["target"] = DictOf(engine.target_report());
        dict["draft"] = DictOf(engine.draft_report());
        return dict;
      });
}
