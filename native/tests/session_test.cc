#include "as2d/runtime/session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <fstream>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "as2d/error.h"
#include "as2d/platform/affinity.h"
#include "no_threads_for_test.h"
#include "runtime_for_test.h"

namespace as2d {
namespace {

std::string ErrorOf(auto action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::shared_ptr<Session> LoadTypes() {
  return Session::Load(TestRuntime(), TestData("types.onnx"), {});
}

std::shared_ptr<Session> LoadLoop(std::shared_ptr<WorkerPool> pool = nullptr) {
  SessionOptions options;
  options.pool = std::move(pool);
  return Session::Load(TestRuntime(), TestData("loop.onnx"), options);
}

// Inputs of types.onnx for `rows` rows: x = 0, 1, 2, ...; ids = 10, 11, ...
struct TypesInputs {
  explicit TypesInputs(std::int64_t rows)
      : x(TestRuntime(), ElementType::kFloat32, {rows, 4}),
        ids(TestRuntime(), ElementType::kInt64, {rows}),
        counts(TestRuntime(), ElementType::kInt32, {rows}),
        flags(TestRuntime(), ElementType::kBool, {rows}),
        bytes(TestRuntime(), ElementType::kUint8, {rows}) {
    std::iota(x.values<float>().begin(), x.values<float>().end(), 0.0f);
    std::iota(ids.values<std::int64_t>().begin(), ids.values<std::int64_t>().end(), 10);
    std::ranges::fill(counts.values<std::int32_t>(), 21);
    flags.values<bool>()[0] = true;
    std::ranges::fill(bytes.values<std::uint8_t>(), std::uint8_t{0x0f});
  }

  std::array<Session::Input, 5> List() const {
    return {{{"x", &x}, {"ids", &ids}, {"counts", &counts}, {"flags", &flags}, {"bytes", &bytes}}};
  }
  void BindTo(Binding& binding) const {
    for (const Session::Input& input : List()) binding.BindInput(input.name, *input.tensor);
  }

  Tensor x, ids, counts, flags, bytes;
};

// A loop.onnx whose run takes much longer than any test waits.
struct LongRun {
  LongRun()
      : trips(TestRuntime(), ElementType::kInt64, {}),
        state(TestRuntime(), ElementType::kFloat32, {16, 16}),
        step(TestRuntime(), ElementType::kFloat32, {16, 16}) {
    trips.values<std::int64_t>()[0] = 1LL << 40;
  }
  std::array<Session::Input, 3> List() const {
    return {{{"trips", &trips}, {"state", &state}, {"step", &step}}};
  }
  Tensor trips, state, step;
};

constexpr std::array<const char*, 1> kResult = {"result"};

TEST(Runtime, KnowsItsVersionAndIsOpenedOnce) {
  const auto runtime = TestRuntime();
  EXPECT_EQ(runtime->version().find("1."), 0u);
  EXPECT_GE(runtime->minor_version(), static_cast<int>(ort::kApiVersion));
  EXPECT_EQ(Runtime::Open(TestLibrary()), runtime);
}

TEST(Runtime, RefusesASecondLibrary) {
  const auto runtime = TestRuntime();
  const std::string error = ErrorOf([] { Runtime::Open("/nonexistent/libother.so"); });
  EXPECT_EQ(error, "/nonexistent/libother.so: another ONNX Runtime is open already: " +
                       runtime->library().string());
}

TEST(Session, DescribesItsInputsAndOutputs) {
  const auto session = LoadTypes();
  ASSERT_EQ(session->inputs().size(), 5u);
  ASSERT_EQ(session->outputs().size(), 5u);
  EXPECT_EQ(session->inputs()[0].name, "x");
  EXPECT_EQ(session->inputs()[0].shape, (Shape{-1, 4}));
  const std::array types = {ElementType::kFloat32, ElementType::kInt64, ElementType::kInt32,
                            ElementType::kBool, ElementType::kUint8};
  for (std::size_t i = 0; i < types.size(); ++i) {
    EXPECT_EQ(session->inputs()[i].type, types[i]);
    EXPECT_EQ(session->outputs()[i].type, types[i]);
  }
  ASSERT_NE(session->FindOutput("next"), nullptr);
  EXPECT_EQ(session->FindOutput("next")->shape, (Shape{-1}));
  EXPECT_EQ(session->FindInput("next"), nullptr);
  EXPECT_EQ(session->threads(), 1);
}

TEST(Session, RunsByName) {
  const auto session = LoadTypes();
  const TypesInputs inputs(2);
  const std::array<const char*, 5> names = {"unset", "y", "next", "doubled", "inverted"};
  const std::vector<Tensor> outputs = session->Run(inputs.List(), names);
  ASSERT_EQ(outputs.size(), names.size());
  EXPECT_FALSE(outputs[0].values<bool>()[0]);
  EXPECT_TRUE(outputs[0].values<bool>()[1]);
  EXPECT_EQ(outputs[1].shape(), (Shape{2, 4}));
  const std::vector<float> expected = {6, 4, 2, 0, 14, 12, 10, 8};
  EXPECT_TRUE(std::ranges::equal(outputs[1].values<float>(), expected));
  EXPECT_EQ(outputs[2].values<std::int64_t>()[1], 12);
  EXPECT_EQ(outputs[3].values<std::int32_t>()[1], 42);
  EXPECT_EQ(outputs[4].values<std::uint8_t>()[1], 0xf0);
}

TEST(Session, OutputsAreViewedAfterTheirHandlesAreGone) {
  const auto session = LoadTypes();
  const TypesInputs inputs(2);
  const std::array<const char*, 1> names = {"y"};
  std::vector<Tensor> outputs = session->Run(inputs.List(), names);
  const Tensor row = outputs[0].View({4});
  outputs.clear();
  EXPECT_EQ(row.values<float>()[0], 6);
}

TEST(Session, FailuresNameTheFileInOneLine) {
  const std::string missing = TestData("missing.onnx").string();
  const std::string absent = ErrorOf([&] { Session::Load(TestRuntime(), missing, {}); });
  EXPECT_EQ(absent.find(missing + ": "), 0u) << absent;

  const auto broken = std::filesystem::temp_directory_path() / "as2d-session-test-broken.onnx";
  std::ofstream(broken) << "this is no model";
  const std::string error = ErrorOf([&] { Session::Load(TestRuntime(), broken, {}); });
  std::filesystem::remove(broken);
  EXPECT_EQ(error.find(broken.string() + ": "), 0u) << error;
  EXPECT_EQ(error.find('\n'), std::string::npos);

  const auto session = LoadTypes();
  const TypesInputs inputs(1);
  const std::array<const char*, 1> names = {"nothing"};
  const std::string run = ErrorOf([&] { session->Run(inputs.List(), names); });
  EXPECT_EQ(run.find(session->file().string() + ": "), 0u) << run;

  const auto half = Session::Load(TestRuntime(), TestData("half.onnx"), {});
  EXPECT_EQ(half->outputs()[0].type, ElementType::kUnknown);
  const Tensor x(TestRuntime(), ElementType::kFloat32, {2});
  const std::array<Session::Input, 1> half_inputs = {{{"x", &x}}};
  const std::array<const char*, 1> half_outputs = {"half"};
  EXPECT_EQ(ErrorOf([&] { half->Run(half_inputs, half_outputs); }),
            "output [2]: element type 10 of ONNX is not supported");
}

TEST(Session, ThreadsAreTakenFromThePool) {
  const auto pool = WorkerPool::Unpinned("lane", 3);
  {
    const auto whole = LoadLoop(pool);
    EXPECT_EQ(whole->threads(), 3);
    EXPECT_EQ(pool->live_workers(), 2);
    SessionOptions options;
    options.pool = pool;
    options.threads = 2;
    const auto part = Session::Load(TestRuntime(), TestData("loop.onnx"), options);
    EXPECT_EQ(pool->live_workers(), 3);
    options.threads = 4;
    const std::string file = TestData("loop.onnx").string();
    EXPECT_EQ(ErrorOf([&] { Session::Load(TestRuntime(), file, options); }),
              file + ": 4 threads asked of a lane of 3");
  }
  EXPECT_EQ(pool->live_workers(), 0);
  EXPECT_EQ(pool->created_workers(), 3);
}

TEST(Session, WorkersComputeOnTheirOwnCore) {
  if (!CanPinThreads()) return;
  const std::vector<int> allowed = ReadAffinity().value().Cores();
  if (allowed.size() < 2) return;  // One core cannot be split; worker_pool_test covers placement.
  std::thread([&] {
    const auto pool = WorkerPool::Pinned("as2d-draft", {allowed[0], allowed[1]});
    const auto pin = pool->PinCaller();
    const auto session = LoadLoop(pool);
    const std::vector<WorkerReport> report = pool->Report();
    ASSERT_EQ(report.size(), 2u);
    EXPECT_EQ(report[0].name, "as2d-draft-0");
    EXPECT_EQ(report[1].name, "as2d-draft-1");
    EXPECT_EQ(report[0].actual, CpuMask{allowed[0]});
    EXPECT_EQ(report[1].actual, CpuMask{allowed[1]});

    // Large enough for the runtime to cut in two; step = 2 I, so that each trip doubles the state.
    Tensor trips(TestRuntime(), ElementType::kInt64, {});
    Tensor state(TestRuntime(), ElementType::kFloat32, {256, 256});
    Tensor step(TestRuntime(), ElementType::kFloat32, {256, 256});
    trips.values<std::int64_t>()[0] = 3;
    std::ranges::fill(state.values<float>(), 1.0f);
    for (std::size_t i = 0; i < 256; ++i) step.values<float>()[257 * i] = 2;
    const std::array<Session::Input, 3> inputs = {
        {{"trips", &trips}, {"state", &state}, {"step", &step}}};
    const std::vector<Tensor> outputs = session->Run(inputs, kResult);
    EXPECT_TRUE(std::ranges::all_of(outputs[0].values<float>(), [](float x) { return x == 8; }));
  }).join();
}

#if defined(__GLIBC__)
TEST(Session, SaysSoWhenItsWorkersCannotBeCreated) {
  const auto pool = WorkerPool::Unpinned("lane", 2);
  const auto runtime = TestRuntime();
  std::string error;
  {
    const NoThreads none;
    error = ErrorOf([&] { LoadLoop(pool); });
  }
  EXPECT_EQ(error.find(TestData("loop.onnx").string() + ": "), 0u) << error;
  EXPECT_EQ(pool->created_workers(), 0);
  EXPECT_EQ(LoadLoop(pool)->threads(), 2);
}
#endif

TEST(Session, TwoLanesAtOnceDoNotDisturbEachOther) {
  constexpr std::int64_t kSide = 96;
  const auto lane = [&](const char* name, float factor, bool& right) {
    const auto pool = WorkerPool::Unpinned(name, 2);
    const auto session = LoadLoop(pool);
    Tensor trips(TestRuntime(), ElementType::kInt64, {});
    Tensor state(TestRuntime(), ElementType::kFloat32, {kSide, kSide});
    Tensor step(TestRuntime(), ElementType::kFloat32, {kSide, kSide});
    const Tensor result(TestRuntime(), ElementType::kFloat32, {kSide, kSide});
    trips.values<std::int64_t>()[0] = 4;
    for (std::size_t i = 0; i < kSide; ++i) step.values<float>()[i * (kSide + 1)] = factor;
    Binding binding(session);
    binding.BindInput("trips", trips);
    binding.BindInput("state", state);
    binding.BindInput("step", step);
    binding.BindOutput("result", result);
    right = true;
    for (int run = 1; run <= 20; ++run) {
      std::ranges::fill(state.values<float>(), static_cast<float>(run));
      binding.Run();
      const float expected = static_cast<float>(run) * factor * factor * factor * factor;
      right = right && std::ranges::all_of(result.values<float>(),
                                           [&](float value) { return value == expected; });
    }
  };
  bool target_right = false;
  bool draft_right = false;
  std::thread target([&] { lane("target", 2, target_right); });
  std::thread draft([&] { lane("draft", 3, draft_right); });
  target.join();
  draft.join();
  EXPECT_TRUE(target_right);
  EXPECT_TRUE(draft_right);
}

TEST(Binding, RunsManyTimesOnTheSameMemory) {
  const auto session = LoadTypes();
  Binding binding(session);
  TypesInputs inputs(1);
  inputs.BindTo(binding);
  const Tensor next(TestRuntime(), ElementType::kInt64, {1});
  binding.BindOutput("next", next);
  for (std::int64_t i = 0; i < 3; ++i) {
    inputs.ids.values<std::int64_t>()[0] = i;
    binding.Run();
    EXPECT_EQ(next.values<std::int64_t>()[0], i + 1);
  }
}

TEST(Binding, WorksInPlace) {
  const auto session = LoadTypes();
  Binding binding(session);
  TypesInputs inputs(1);
  inputs.BindTo(binding);
  binding.BindOutput("next", inputs.ids);
  for (int i = 0; i < 5; ++i) binding.Run();
  EXPECT_EQ(inputs.ids.values<std::int64_t>()[0], 15);
}

TEST(Binding, RowsOfOneBufferInSeveralShapes) {
  const auto session = LoadTypes();
  const TypesInputs all(4);
  const Tensor y(TestRuntime(), ElementType::kFloat32, {4, 4});
  for (const std::int64_t rows : {1, 4, 2}) {
    Binding binding(session);
    binding.BindInput("x", all.x.View({rows, 4}));
    for (const Session::Input& input : all.List()) {
      if (std::string_view(input.name) != "x") {
        binding.BindInput(input.name, input.tensor->View({rows}));
      }
    }
    std::ranges::fill(y.values<float>(), -1.0f);
    binding.BindOutput("y", y.View({rows, 4}));
    binding.Run();
    const auto written = static_cast<std::size_t>(4 * rows);
    EXPECT_EQ(y.values<float>()[written - 1], 8.0f * static_cast<float>(rows - 1));
    EXPECT_EQ(std::ranges::count(y.values<float>(), -1.0f), 16 - 4 * rows);
  }
}

TEST(Binding, OutputsThatTheRuntimeAllocatesFollowTheShapeAndStayTheTakers) {
  const auto session = LoadTypes();
  Binding binding(session);
  const TypesInputs small(1);
  const TypesInputs large(3);
  const Tensor next(TestRuntime(), ElementType::kInt64, {1});
  small.BindTo(binding);
  EXPECT_EQ(ErrorOf([&] { binding.TakeOutputs(); }),
            session->file().string() + ": no outputs to take; the last run did not succeed");
  binding.BindOutput("y");
  binding.BindOutput("next", next);
  binding.Run();
  const std::vector<Tensor> first = binding.TakeOutputs();
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(first[0].shape(), (Shape{1, 4}));
  EXPECT_EQ(first[1].data(), next.data());

  large.BindTo(binding);
  binding.BindOutput("next");
  binding.Run();
  const std::vector<Tensor> second = binding.TakeOutputs();
  EXPECT_EQ(second[0].shape(), (Shape{3, 4}));
  EXPECT_EQ(second[0].values<float>()[11], 16);
  EXPECT_EQ(second[1].values<std::int64_t>()[2], 13);
  EXPECT_EQ(first[0].values<float>()[0], 6);
}

TEST(Binding, KeepsTheMemoryOfWhatIsBound) {
  const auto session = LoadTypes();
  Binding binding(session);
  TypesInputs(2).BindTo(binding);  // Gone at once.
  binding.BindOutput("y");
  Binding moved = std::move(binding);
  moved.Run();
  EXPECT_EQ(moved.TakeOutputs()[0].values<float>()[0], 6);
}

TEST(Binding, RefusesWhatDoesNotFitTheGraph) {
  const auto session = LoadTypes();
  Binding binding(session);
  const std::string file = session->file().string();
  const Tensor flat(TestRuntime(), ElementType::kFloat32, {4});
  const Tensor narrow(TestRuntime(), ElementType::kFloat32, {1, 3});
  const Tensor ids(TestRuntime(), ElementType::kInt64, {1, 4});
  EXPECT_EQ(ErrorOf([&] { binding.BindInput("z", flat); }),
            file + ": input z: the graph has no such input");
  EXPECT_EQ(ErrorOf([&] { binding.BindOutput("x", flat); }),
            file + ": output x: the graph has no such output");
  EXPECT_EQ(ErrorOf([&] { binding.BindOutput("x"); }),
            file + ": output x: the graph has no such output");
  EXPECT_EQ(ErrorOf([&] { binding.BindInput("x", flat); }),
            file + ": input x: is float32 [?,4], not float32 [4]");
  EXPECT_EQ(ErrorOf([&] { binding.BindInput("x", narrow); }),
            file + ": input x: is float32 [?,4], not float32 [1,3]");
  EXPECT_EQ(ErrorOf([&] { binding.BindOutput("y", ids); }),
            file + ": output y: is float32 [?,4], not int64 [1,4]");
  EXPECT_EQ(ErrorOf([&] { binding.BindInput("x", Tensor()); }),
            file + ": input x: no tensor given");
}

TEST(Canceller, EndsARunFromAnotherThreadAndCanBeUsedAgain) {
  const auto session = LoadLoop();
  Canceller canceller(TestRuntime());
  LongRun run;
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    canceller.Cancel();
  });
  EXPECT_THROW(session->Run(run.List(), kResult, &canceller), Cancelled);
  other.join();
  EXPECT_TRUE(canceller.cancelled());
  // Later runs stop as well...
  EXPECT_THROW(session->Run(run.List(), kResult, &canceller), Cancelled);
  // ...until the reset.
  canceller.Reset();
  EXPECT_FALSE(canceller.cancelled());
  run.trips.values<std::int64_t>()[0] = 1;
  EXPECT_EQ(session->Run(run.List(), kResult, &canceller).size(), 1u);
}

TEST(Canceller, EndsABoundRunAndLeavesTheBindingUsable) {
  const auto session = LoadLoop();
  Canceller canceller(TestRuntime());
  LongRun run;
  Binding binding(session);
  for (const Session::Input& input : run.List()) binding.BindInput(input.name, *input.tensor);
  binding.BindOutput("result");
  std::thread other([&] { canceller.Cancel(); });
  EXPECT_THROW(binding.Run(&canceller), Cancelled);
  other.join();
  EXPECT_THROW(binding.TakeOutputs(), Error);
  run.trips.values<std::int64_t>()[0] = 2;
  binding.Run();
  EXPECT_EQ(binding.TakeOutputs()[0].shape(), (Shape{16, 16}));
}

TEST(Canceller, AFailureOfARunIsNotTakenForACancel) {
  const auto session = LoadLoop();
  const Canceller canceller(TestRuntime());
  LongRun run;
  run.step = Tensor(TestRuntime(), ElementType::kFloat32, {3, 3});
  EXPECT_THROW(session->Run(run.List(), kResult, &canceller), Error);
}

TEST(Runtime, LogsGoToTheSinkAndNowhereElse) {
  std::atomic<int> messages = 0;
  std::atomic<int> broken_lines = 0;
  Runtime::SetLogSink([&](int severity, std::string_view message) {
    if (severity < ort::kLogWarning || message.find('\n') != std::string_view::npos) ++broken_lines;
    ++messages;
  });
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  const auto session = LoadLoop();
  LongRun run;
  run.step = Tensor(TestRuntime(), ElementType::kFloat32, {3, 3});
  EXPECT_THROW(session->Run(run.List(), kResult), Error);
  EXPECT_GT(messages, 0);
  EXPECT_EQ(broken_lines, 0);

  const int before = messages;
  Runtime::SetLogSink({});
  EXPECT_THROW(session->Run(run.List(), kResult), Error);
  EXPECT_EQ(messages, before);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

}  // namespace
}  // namespace as2d
