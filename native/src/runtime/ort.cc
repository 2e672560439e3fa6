#include "as2d/runtime/ort.h"

#include <dlfcn.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <mutex>
#include <system_error>
#include <utility>

#include "as2d/error.h"
#include "as2d/kernels/operators.h"

namespace as2d {
namespace {

namespace entry = ort::entry;

// The library keeps the pointer to its logging function for as long as any environment lives, even
// one that somebody else opened; so the sink belongs to the process and is never destroyed.
struct Log {
  std::mutex mutex;
  std::shared_ptr<const Runtime::LogSink> sink;
};

Log& ProcessLog() {
  static Log& log = *new Log;
  return log;
}

// Called by the library from any thread. Nothing may be thrown through C.
void ForwardLog(void*, int severity, const char*, const char*, const char*, const char* message) {
  try {
    std::shared_ptr<const Runtime::LogSink> sink;
    {
      const std::lock_guard lock(ProcessLog().mutex);
      sink = ProcessLog().sink;
    }
    if (sink && *sink) (*sink)(severity, OneLine(message));
  } catch (...) {
    // A message that cannot be delivered is dropped.
  }
}

int MinorVersion(const std::string& version) {
  const std::size_t dot = version.find('.');
  int minor = 0;
  if (dot != std::string::npos) {
    std::from_chars(version.data() + dot + 1, version.data() + version.size(), minor);
  }
  return minor;
}

// The one that is open, for the next caller of Open.
struct OpenRuntime {
  std::mutex mutex;
  std::weak_ptr<Runtime> runtime;
};

OpenRuntime& ProcessRuntime() {
  static OpenRuntime& open = *new OpenRuntime;
  return open;
}

}  // namespace

std::shared_ptr<Runtime> Runtime::Open(const std::filesystem::path& library) {
  const std::lock_guard lock(ProcessRuntime().mutex);
  // A path that cannot be resolved is left as it is: dlopen says what is wrong with it.
  std::error_code ignored;
  std::filesystem::path resolved = std::filesystem::canonical(library, ignored);
  if (resolved.empty()) resolved = library;
  const std::string name = resolved.string();

  if (std::shared_ptr<Runtime> open = ProcessRuntime().runtime.lock()) {
    if (open->library_ == resolved) return open;
    throw Error(name + ": another ONNX Runtime is open already: " + open->library_.string());
  }

  // Read once, when the library initialises; its own call for the purpose needs an environment,
  // whose creation has sent the first event already.
  setenv("ORT_DISABLE_TELEMETRY", "1", /*overwrite=*/0);

  // Never closed: the library has thread-local data whose destructors would outlive its code.
  void* const handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* const reason = dlerror();
    throw Error(name + ": cannot be loaded: " + (reason ? reason : "unknown reason"));
  }
  const auto get_base = reinterpret_cast<const ort::ApiBase* (*)()>(dlsym(handle, "OrtGetApiBase"));
  if (!get_base) throw Error(name + ": is not ONNX Runtime (it has no OrtGetApiBase)");

  std::shared_ptr<Runtime> runtime(new Runtime);
  const ort::ApiBase* const base = get_base();
  runtime->library_ = std::move(resolved);
  runtime->version_ = base->get_version_string();
  runtime->minor_version_ = MinorVersion(runtime->version_);
  const OrtApi* const table = base->get_api(ort::kApiVersion);
  if (!table) {
    throw Error(name + ": ONNX Runtime " + runtime->version_ + " is too old; 1." +
                std::to_string(ort::kApiVersion) + " or later is needed");
  }
  runtime->api_ = ort::Api(table);
  runtime->Check(runtime->api_.Call<entry::CreateEnvWithCustomLogger>(
                     &ForwardLog, nullptr, ort::kLogWarning, "as2d", &runtime->env_),
                 name);
  // For a library that somebody else has initialised before us, or that does not know the variable.
  runtime->Check(runtime->api_.Call<entry::DisableTelemetryEvents>(runtime->env_), name);
  runtime->Check(runtime->api_.Call<entry::CreateCpuMemoryInfo>(
                     ort::kArenaAllocator, ort::kMemTypeDefault, &runtime->cpu_memory_),
                 name);
  runtime->Check(
      runtime->api_.Call<entry::CreateCustomOpDomain>(kOperatorDomain, &runtime->operators_), name);
  for (const OrtCustomOp* const op : Operators()) {
    runtime->Check(runtime->api_.Call<entry::CustomOpDomain_Add>(runtime->operators_, op), name);
  }
  ProcessRuntime().runtime = runtime;
  return runtime;
}

void Runtime::SetLogSink(LogSink sink) {
  auto shared = std::make_shared<const LogSink>(std::move(sink));
  const std::lock_guard lock(ProcessLog().mutex);
  ProcessLog().sink = std::move(shared);
}

Runtime::~Runtime() {
  if (operators_) api_.Call<entry::ReleaseCustomOpDomain>(operators_);
  if (cpu_memory_) api_.Call<entry::ReleaseMemoryInfo>(cpu_memory_);
  if (env_) api_.Call<entry::ReleaseEnv>(env_);
}

void Runtime::Check(OrtStatus* status, std::string_view subject) const {
  if (!status) return;
  std::string message(subject);
  message += ": ";
  message += api_.Call<entry::GetErrorMessage>(status);
  api_.Call<entry::ReleaseStatus>(status);
  throw Error(message);
}

}  // namespace as2d
