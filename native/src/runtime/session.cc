#include "as2d/runtime/session.h"

#include <algorithm>
#include <utility>

#include "as2d/error.h"

namespace as2d {
namespace {

namespace entry = ort::entry;

// First release whose headers document session.intra_op.spin_duration_us. An older one ignores the
// key and would spin for 2^20 rounds, tens of milliseconds, on the other lane's time.
constexpr int kTimedSpinMinorVersion = 29;

void* CreateWorker(void* workers, ort::WorkerFunction work, void* argument) {
  return static_cast<SessionWorkers*>(workers)->Create(work, argument);
}

void JoinWorker(void* worker) { SessionWorkers::Join(worker); }

int OptimizationLevel(GraphOptimization optimization) {
  switch (optimization) {
    case GraphOptimization::kNone:
      return ort::kOptimizeNone;
    case GraphOptimization::kBasic:
      return ort::kOptimizeBasic;
    case GraphOptimization::kExtended:
      return ort::kOptimizeExtended;
    case GraphOptimization::kAll:
      break;
  }
  return ort::kOptimizeAll;
}

// The runtime's own options object, filled from ours.
class OptionsBuilder {
 public:
  OptionsBuilder(const Runtime& runtime, std::string subject)
      : runtime_(runtime), subject_(std::move(subject)) {
    Check(runtime_.api().Call<entry::CreateSessionOptions>(&options_));
  }
  ~OptionsBuilder() { runtime_.api().Call<entry::ReleaseSessionOptions>(options_); }
  OptionsBuilder(const OptionsBuilder&) = delete;
  OptionsBuilder& operator=(const OptionsBuilder&) = delete;

  template <typename Entry, typename... Arguments>
  void Set(Arguments... arguments) {
    Check(runtime_.api().Call<Entry>(options_, arguments...));
  }
  void Config(const std::string& key, const std::string& value) {
    Set<entry::AddSessionConfigEntry>(key.c_str(), value.c_str());
  }
  const OrtSessionOptions* get() const { return options_; }

 private:
  void Check(OrtStatus* status) { runtime_.Check(status, subject_); }

  const Runtime& runtime_;
  const std::string subject_;
  OrtSessionOptions* options_ = nullptr;
};

// Type and shape from what the graph declares; leaves `info` unknown for anything but a tensor.
void Describe(const Runtime& runtime, const OrtTypeInfo* type, const std::string& subject,
              ValueInfo& info) {
  const ort::Api& api = runtime.api();
  int kind = 0;
  runtime.Check(api.Call<entry::GetOnnxTypeFromTypeInfo>(type, &kind), subject);
  if (kind != ort::kOnnxTypeTensor) return;
  const OrtTensorTypeAndShapeInfo* tensor = nullptr;
  runtime.Check(api.Call<entry::CastTypeInfoToTensorInfo>(type, &tensor), subject);
  int element = 0;
  std::size_t rank = 0;
  runtime.Check(api.Call<entry::GetTensorElementType>(tensor, &element), subject);
  runtime.Check(api.Call<entry::GetDimensionsCount>(tensor, &rank), subject);
  info.shape.resize(rank);
  runtime.Check(api.Call<entry::GetDimensions>(tensor, info.shape.data(), rank), subject);
  const auto known = static_cast<ElementType>(element);
  if (ElementBytes(known) != 0) info.type = known;
}

template <typename CountEntry, typename NameEntry, typename TypeEntry>
std::vector<ValueInfo> ReadValues(const Runtime& runtime, const OrtSession* session,
                                  const std::string& subject) {
  const ort::Api& api = runtime.api();
  OrtAllocator* allocator = nullptr;
  runtime.Check(api.Call<entry::GetAllocatorWithDefaultOptions>(&allocator), subject);
  std::size_t count = 0;
  runtime.Check(api.Call<CountEntry>(session, &count), subject);

  std::vector<ValueInfo> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    char* name = nullptr;
    runtime.Check(api.Call<NameEntry>(session, i, allocator, &name), subject);
    const std::shared_ptr<char> owned_name(name, [&](char* text) {
      // Freeing with the allocator it came from cannot fail.
      if (OrtStatus* status = api.Call<entry::AllocatorFree>(allocator, text)) {
        api.Call<entry::ReleaseStatus>(status);
      }
    });
    values[i].name = name;

    OrtTypeInfo* type = nullptr;
    runtime.Check(api.Call<TypeEntry>(session, i, &type), subject);
    const std::shared_ptr<OrtTypeInfo> owned_type(
        type, [&](OrtTypeInfo* info) { api.Call<entry::ReleaseTypeInfo>(info); });
    Describe(runtime, type, subject, values[i]);
  }
  return values;
}

const ValueInfo* Find(const std::vector<ValueInfo>& values, std::string_view name) {
  const auto found = std::ranges::find(values, name, &ValueInfo::name);
  return found == values.end() ? nullptr : &*found;
}

// Throws Error if `tensor` cannot stand where the graph declares `info`. The runtime reports rank 0
// for a scalar and for a shape that the graph does not declare; its own check at Run decides then.
void CheckFits(const Tensor& tensor, const ValueInfo& info, const std::string& subject) {
  if (tensor.empty()) throw Error(subject + ": no tensor given");
  bool fits = tensor.type() == info.type;
  if (!info.shape.empty()) fits = fits && tensor.shape().size() == info.shape.size();
  for (std::size_t i = 0; fits && i < info.shape.size(); ++i) {
    fits = info.shape[i] == -1 || info.shape[i] == tensor.shape()[i];
  }
  if (fits) return;
  throw Error(subject + ": is " + std::string(ElementName(info.type)) + ' ' +
              ShapeText(info.shape) + ", not " + std::string(ElementName(tensor.type())) + ' ' +
              ShapeText(tensor.shape()));
}

std::size_t IndexOf(const std::vector<ValueInfo>& values, const ValueInfo* info) {
  return static_cast<std::size_t>(info - values.data());
}

// Takes over all values; those after one of an unsupported type are freed, too.
std::vector<Tensor> AdoptAll(const std::shared_ptr<const Runtime>& runtime,
                             std::span<OrtValue* const> values) {
  std::vector<Tensor> tensors;
  tensors.reserve(values.size());
  try {
    for (OrtValue* const value : values) tensors.push_back(Tensor::Adopt(runtime, value));
  } catch (...) {
    for (OrtValue* const value : values.subspan(tensors.size() + 1)) {
      runtime->api().Call<entry::ReleaseValue>(value);
    }
    throw;
  }
  return tensors;
}

}  // namespace

SessionOptions OwnOperators(std::shared_ptr<WorkerPool> pool, int threads) {
  SessionOptions options;
  options.pool = std::move(pool);
  options.threads = threads;
  options.spin_microseconds = 0;
  return options;
}

Canceller::Canceller(std::shared_ptr<const Runtime> runtime) : runtime_(std::move(runtime)) {
  runtime_->Check(runtime_->api().Call<entry::CreateRunOptions>(&options_), "run options");
}

Canceller::~Canceller() { runtime_->api().Call<entry::ReleaseRunOptions>(options_); }

void Canceller::Cancel() noexcept {
  // First, so that a run that ends because of the flag finds its reason.
  cancelled_.store(true, std::memory_order_release);
  if (OrtStatus* status = runtime_->api().Call<entry::RunOptionsSetTerminate>(options_)) {
    runtime_->api().Call<entry::ReleaseStatus>(status);
  }
}

void Canceller::Reset() noexcept {
  if (OrtStatus* status = runtime_->api().Call<entry::RunOptionsUnsetTerminate>(options_)) {
    runtime_->api().Call<entry::ReleaseStatus>(status);
  }
  cancelled_.store(false, std::memory_order_release);
}

std::shared_ptr<Session> Session::Load(std::shared_ptr<const Runtime> runtime,
                                       const std::filesystem::path& file,
                                       const SessionOptions& options) {
  std::shared_ptr<Session> session(new Session(std::move(runtime), file));
  const Runtime& ort = *session->runtime_;
  const std::string subject = file.string();

  int threads = options.threads;
  if (threads == 0) threads = options.pool ? options.pool->width() : 1;
  const int most = options.pool ? options.pool->width() : 1;
  if (threads < 1 || threads > most) {
    throw Error(subject + ": " + std::to_string(threads) + " threads asked of a lane of " +
                std::to_string(most));
  }
  session->threads_ = threads;

  OptionsBuilder builder(ort, subject);
  builder.Set<entry::SetSessionExecutionMode>(ort::kExecutionSequential);
  builder.Set<entry::SetSessionLogSeverityLevel>(ort::kLogWarning);
  builder.Set<entry::SetSessionGraphOptimizationLevel>(OptimizationLevel(options.optimization));
  builder.Set<entry::SetIntraOpNumThreads>(threads);
  builder.Set<entry::AddCustomOpDomain>(ort.operators());
  if (threads > 1) {
    session->workers_ = std::make_unique<SessionWorkers>(options.pool);
    builder.Set<entry::SessionOptionsSetCustomCreateThreadFn>(&CreateWorker);
    builder.Set<entry::SessionOptionsSetCustomThreadCreationOptions>(
        static_cast<void*>(session->workers_.get()));
    builder.Set<entry::SessionOptionsSetCustomJoinThreadFn>(&JoinWorker);
  }
  const bool spin = options.spin_microseconds > 0 && ort.minor_version() >= kTimedSpinMinorVersion;
  builder.Config("session.intra_op.allow_spinning", spin ? "1" : "0");
  if (spin) {
    builder.Config("session.intra_op.spin_duration_us", std::to_string(options.spin_microseconds));
  }
  // Weights outside the arena, which grows by doubling and would keep up to as much again unused.
  builder.Config("session.use_device_allocator_for_initializers", "1");
  if (file.extension() == ".ort") {
    // Weights that no kernel repacks are then read from the mapped file and never copied.
    builder.Config("session.use_memory_mapped_ort_model", "1");
    builder.Config("session.use_ort_model_bytes_for_initializers", "1");
  }
  for (const auto& [key, value] : options.config) builder.Config(key, value);

  ort.Check(ort.api().Call<entry::CreateSession>(ort.env(), subject.c_str(), builder.get(),
                                                 &session->session_),
            subject);
  ort.Check(ort.api().Call<entry::CreateRunOptions>(&session->plain_options_), subject);
  session->inputs_ = ReadValues<entry::SessionGetInputCount, entry::SessionGetInputName,
                                entry::SessionGetInputTypeInfo>(ort, session->session_, subject);
  session->outputs_ = ReadValues<entry::SessionGetOutputCount, entry::SessionGetOutputName,
                                 entry::SessionGetOutputTypeInfo>(ort, session->session_, subject);
  return session;
}

Session::Session(std::shared_ptr<const Runtime> runtime, std::filesystem::path file)
    : runtime_(std::move(runtime)), file_(std::move(file)) {}

Session::~Session() {
  if (plain_options_) runtime_->api().Call<entry::ReleaseRunOptions>(plain_options_);
  if (session_) runtime_->api().Call<entry::ReleaseSession>(session_);
}

const ValueInfo* Session::FindInput(std::string_view name) const { return Find(inputs_, name); }

const ValueInfo* Session::FindOutput(std::string_view name) const { return Find(outputs_, name); }

std::vector<Tensor> Session::Run(std::span<const Input> inputs,
                                 std::span<const char* const> outputs, const Canceller* canceller) {
  std::vector<const char*> names;
  std::vector<const OrtValue*> values;
  for (const Input& input : inputs) {
    names.push_back(input.name);
    values.push_back(input.tensor->value());
  }
  std::vector<OrtValue*> results(outputs.size(), nullptr);
  CheckRun(runtime_->api().Call<entry::Run>(session_, RunOptions(canceller), names.data(),
                                            values.data(), names.size(), outputs.data(),
                                            outputs.size(), results.data()),
           canceller);
  return AdoptAll(runtime_, results);
}

void Session::CheckRun(OrtStatus* status, const Canceller* canceller) const {
  if (!status) return;
  if (canceller && canceller->cancelled()) {
    runtime_->api().Call<entry::ReleaseStatus>(status);
    throw Cancelled(file_.string() + ": run cancelled");
  }
  runtime_->Check(status, file_.string());
}

const OrtRunOptions* Session::RunOptions(const Canceller* canceller) const {
  return canceller ? canceller->options() : plain_options_;
}

Binding::Binding(std::shared_ptr<Session> session) : session_(std::move(session)) {
  const Runtime& ort = *session_->runtime_;
  ort.Check(ort.api().Call<entry::CreateIoBinding>(session_->session_, &binding_),
            session_->file_.string());
  kept_inputs_.resize(session_->inputs_.size());
}

Binding::~Binding() {
  if (binding_) session_->runtime_->api().Call<entry::ReleaseIoBinding>(binding_);
}

Binding::Binding(Binding&& other) noexcept
    : session_(std::move(other.session_)),
      binding_(std::exchange(other.binding_, nullptr)),
      kept_inputs_(std::move(other.kept_inputs_)),
      outputs_(std::move(other.outputs_)),
      has_run_(other.has_run_),
      has_values_(other.has_values_) {}

void Binding::BindInput(const std::string& name, const Tensor& tensor) {
  const std::string subject = session_->file_.string() + ": input " + name;
  const ValueInfo* const info = session_->FindInput(name);
  if (!info) throw Error(subject + ": the graph has no such input");
  CheckFits(tensor, *info, subject);
  const Runtime& ort = *session_->runtime_;
  ort.Check(ort.api().Call<entry::BindInput>(binding_, name.c_str(), tensor.value()), subject);
  kept_inputs_[IndexOf(session_->inputs_, info)] = tensor.View(tensor.shape());
}

void Binding::BindOutput(const std::string& name, const Tensor& tensor) {
  const std::string subject = session_->file_.string() + ": output " + name;
  const ValueInfo* const info = session_->FindOutput(name);
  if (!info) throw Error(subject + ": the graph has no such output");
  CheckFits(tensor, *info, subject);
  const Runtime& ort = *session_->runtime_;
  ort.Check(ort.api().Call<entry::BindOutput>(binding_, name.c_str(), tensor.value()), subject);
  OutputSlot(*info).kept = tensor.View(tensor.shape());
}

void Binding::BindOutput(const std::string& name) {
  const ValueInfo* const info = session_->FindOutput(name);
  if (!info) {
    throw Error(session_->file_.string() + ": output " + name + ": the graph has no such output");
  }
  LeaveToRuntime(*info);
  OutputSlot(*info).kept = Tensor();
}

void Binding::Run(const Canceller* canceller) {
  // The runtime would take the value that it allocated last time for a buffer to fill again, over
  // what the caller has taken and in the old shape.
  for (Output& output : outputs_) {
    if (output.kept.empty() && has_run_) LeaveToRuntime(*output.info);
  }
  has_run_ = true;
  has_values_ = false;
  session_->CheckRun(session_->runtime_->api().Call<entry::RunWithBinding>(
                         session_->session_, session_->RunOptions(canceller), binding_),
                     canceller);
  has_values_ = true;
}

std::vector<Tensor> Binding::TakeOutputs() const {
  const Runtime& ort = *session_->runtime_;
  const std::string subject = session_->file_.string();
  if (!has_values_) throw Error(subject + ": no outputs to take; the last run did not succeed");
  OrtAllocator* allocator = nullptr;
  ort.Check(ort.api().Call<entry::GetAllocatorWithDefaultOptions>(&allocator), subject);
  OrtValue** values = nullptr;
  std::size_t count = 0;
  ort.Check(ort.api().Call<entry::GetBoundOutputValues>(binding_, allocator, &values, &count),
            subject);
  const std::shared_ptr<OrtValue*> owned(values, [&](OrtValue** list) {
    if (!list) return;
    if (OrtStatus* status =
            ort.api().Call<entry::AllocatorFree>(allocator, static_cast<void*>(list))) {
      ort.api().Call<entry::ReleaseStatus>(status);
    }
  });
  std::vector<Tensor> tensors = AdoptAll(session_->runtime_, {values, count});
  for (std::size_t i = 0; i < count; ++i) {
    // The runtime's handle on a bound tensor does not keep our memory; our own handle does.
    const Tensor& kept = outputs_[i].kept;
    if (!kept.empty()) tensors[i] = kept.View(kept.shape());
  }
  return tensors;
}

Binding::Output& Binding::OutputSlot(const ValueInfo& info) {
  const auto found = std::ranges::find(outputs_, &info, &Output::info);
  if (found != outputs_.end()) return *found;
  return outputs_.emplace_back(Output{&info, Tensor()});
}

void Binding::LeaveToRuntime(const ValueInfo& info) {
  const Runtime& ort = *session_->runtime_;
  ort.Check(
      ort.api().Call<entry::BindOutputToDevice>(binding_, info.name.c_str(), ort.cpu_memory()),
      session_->file_.string());
}

}  // namespace as2d
