#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "as2d/runtime/ort_abi.h"

namespace as2d {

/// The ONNX Runtime library, loaded at run time, and its one environment. Sessions, tensors and
/// cancellers keep it alive. All methods may be called from any thread.
class Runtime {
 public:
  /// Receives what the library logs at severity warning (2), error (3) or fatal (4), one line each,
  /// from any thread.
  using LogSink = std::function<void(int severity, std::string_view message)>;

  /// Loads `library` (libonnxruntime.so...). A second call while the first object lives returns it.
  /// The first call sets ORT_DISABLE_TELEMETRY=1 in the process's environment unless the user has
  /// set it: official libraries (seen in 1.32) otherwise keep a device id and a database in the
  /// user's cache and send events to their maker, which a tool that works on private speech must
  /// not do. Throws Error: not loadable, not ONNX Runtime, too old, or another library is open
  /// already (two environments in one process would run two sets of everything).
  static std::shared_ptr<Runtime> Open(const std::filesystem::path& library);

  /// Where log messages go, for the whole process; an empty sink drops them, which is the default:
  /// nothing is ever written to stderr behind the caller's back. What matters comes back as Error.
  static void SetLogSink(LogSink sink);

  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  /// The library's version, e.g. "1.32.0".
  const std::string& version() const { return version_; }
  /// Second number of the version, e.g. 32; 0 if the version does not read as one.
  int minor_version() const { return minor_version_; }
  const std::filesystem::path& library() const { return library_; }

  const ort::Api& api() const { return api_; }
  OrtEnv* env() const { return env_; }
  /// Describes plain memory, in which all tensors of this engine lie.
  const OrtMemoryInfo* cpu_memory() const { return cpu_memory_; }
  /// The project's own operators (as2d/kernels/operators.h), for every session.
  OrtCustomOpDomain* operators() const { return operators_; }
  /// Takes the status of a call, frees it and throws Error("<subject>: <message>") unless it says
  /// success (null). `subject` names the file or operation.
  void Check(OrtStatus* status, std::string_view subject) const;

 private:
  Runtime() = default;

  std::filesystem::path library_;
  std::string version_;
  int minor_version_ = 0;
  ort::Api api_;
  OrtEnv* env_ = nullptr;
  OrtMemoryInfo* cpu_memory_ = nullptr;
  OrtCustomOpDomain* operators_ = nullptr;
};

}  // namespace as2d
