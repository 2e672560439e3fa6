#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "as2d/platform/worker_pool.h"
#include "as2d/runtime/ort.h"
#include "as2d/runtime/tensor.h"

namespace as2d {

enum class GraphOptimization { kNone, kBasic, kExtended, kAll };

struct SessionOptions {
  /// How long an idle worker looks for work before it sleeps; the runtime keeps to it within a
  /// factor of about three. Longer than what lies between two steps of a lane (well below 1 ms),
  /// whose workers are then awake for the next one: without spinning, best step times were 10 to 20
  /// % worse. A lane that stops costs its cores some 3 ms once, where the runtime's own default
  /// spins for 50 ms.
  static constexpr int kDefaultSpinMicroseconds = 1000;

  /// The lane that the session belongs to; its workers are created, named and pinned by it. Null
  /// only for one thread.
  std::shared_ptr<WorkerPool> pool;
  /// Threads that share the work of one Run, the caller included; 0: the pool's width.
  int threads = 0;
  GraphOptimization optimization = GraphOptimization::kAll;
  /// 0: idle workers sleep at once.
  int spin_microseconds = kDefaultSpinMicroseconds;
  /// Further `session.*` and other entries, set last. The runtime accepts unknown keys in silence.
  std::vector<std::pair<std::string, std::string>> config;
};

/// For graphs of our own operators. They share their work out over the crew, and the runtime's
/// threads must not spin on the crew's cores meanwhile.
SessionOptions OwnOperators(std::shared_ptr<WorkerPool> pool, int threads = 0);

/// An input or output of a graph.
struct ValueInfo {
  std::string name;
  ElementType type = ElementType::kUnknown;
  Shape shape;  ///< -1: left open by the graph.
};

/// Ends runs from another thread. A run in progress stops between two operators; runs started later
/// with the same canceller stop at once, until Reset. One canceller may serve any number of
/// sessions.
class Canceller {
 public:
  explicit Canceller(std::shared_ptr<const Runtime> runtime);
  ~Canceller();
  Canceller(const Canceller&) = delete;
  Canceller& operator=(const Canceller&) = delete;

  /// From any thread; never blocks.
  void Cancel() noexcept;
  /// Only while nothing runs with it.
  void Reset() noexcept;
  bool cancelled() const noexcept { return cancelled_.load(std::memory_order_acquire); }

  const OrtRunOptions* options() const { return options_; }

 private:
  std::shared_ptr<const Runtime> runtime_;
  OrtRunOptions* options_ = nullptr;
  std::atomic<bool> cancelled_{false};
};

/// A loaded graph. Run may be called from several threads; a Binding belongs to one at a time.
class Session {
 public:
  struct Input {
    const char* name;
    const Tensor* tensor;
  };

  /// Loads a model (.onnx, with external data beside it, or .ort, which is mapped into memory).
  /// Throws Error, which names the file.
  static std::shared_ptr<Session> Load(std::shared_ptr<const Runtime> runtime,
                                       const std::filesystem::path& file,
                                       const SessionOptions& options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const std::filesystem::path& file() const { return file_; }
  int threads() const { return threads_; }
  /// In the graph's order.
  const std::vector<ValueInfo>& inputs() const { return inputs_; }
  const std::vector<ValueInfo>& outputs() const { return outputs_; }
  /// Null if the graph has none of that name.
  const ValueInfo* FindInput(std::string_view name) const;
  const ValueInfo* FindOutput(std::string_view name) const;

  /// Runs once; the outputs' memory is allocated by the runtime. Blocks until done. Throws Error
  /// (names the file) or Cancelled.
  std::vector<Tensor> Run(std::span<const Input> inputs, std::span<const char* const> outputs,
                          const Canceller* canceller = nullptr);

  const std::shared_ptr<const Runtime>& runtime() const { return runtime_; }

 private:
  friend class Binding;

  Session(std::shared_ptr<const Runtime> runtime, std::filesystem::path file);
  /// Takes the status of a run; throws Cancelled if the canceller was the cause.
  void CheckRun(OrtStatus* status, const Canceller* canceller) const;
  const OrtRunOptions* RunOptions(const Canceller* canceller) const;

  std::shared_ptr<const Runtime> runtime_;
  std::filesystem::path file_;
  int threads_ = 1;
  std::unique_ptr<SessionWorkers> workers_;  // Outlives session_, whose end joins them.
  OrtSession* session_ = nullptr;
  OrtRunOptions* plain_options_ =
      nullptr;  // For runs without canceller: RunWithBinding wants some.
  std::vector<ValueInfo> inputs_;
  std::vector<ValueInfo> outputs_;
};

/// A session's inputs and outputs tied to tensors once and run many times. Nothing is looked up,
/// copied or allocated by this class in Run; keep one binding for each shape (say, number of rows)
/// rather than binding anew in a loop. The binding keeps the memory of its tensors and its session
/// alive.
class Binding {
 public:
  explicit Binding(std::shared_ptr<Session> session);
  ~Binding();
  Binding(Binding&& other) noexcept;
  Binding& operator=(Binding&&) = delete;

  /// The tensor's memory is read at each Run, in its present shape; binding a name again replaces
  /// it. Throws Error if the graph has no such input, or another type or rank there.
  void BindInput(const std::string& name, const Tensor& tensor);
  /// The output is written into the tensor's memory, whose shape must be the output's; it may be
  /// the memory of an input where the operator works in place.
  void BindOutput(const std::string& name, const Tensor& tensor);
  /// The runtime allocates the output anew at each Run; take it with TakeOutputs.
  void BindOutput(const std::string& name);

  /// Blocks until done. Throws Error (names the file) or Cancelled; after either, bound outputs
  /// hold anything.
  void Run(const Canceller* canceller = nullptr);

  /// Values of all bound outputs, in the order in which they were first bound. Throws Error unless
  /// the last run succeeded, or if the runtime made a type that is not an ElementType.
  std::vector<Tensor> TakeOutputs() const;

 private:
  struct Output {
    const ValueInfo* info;  // Points into the session.
    Tensor kept;            // Empty: the runtime allocates.
  };

  /// The output's entry in outputs_; a new one at the end if it has none.
  Output& OutputSlot(const ValueInfo& info);
  void LeaveToRuntime(const ValueInfo& info);

  std::shared_ptr<Session> session_;
  OrtIoBinding* binding_ = nullptr;  // Null after a move.
  std::vector<Tensor> kept_inputs_;  // By the input's place in the graph.
  std::vector<Output> outputs_;      // In the runtime's order: as first bound.
  bool has_run_ = false;
  bool has_values_ = false;  // The last run succeeded.
};

}  // namespace as2d
