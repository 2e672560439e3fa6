#ifndef AS2D_RUNTIME_ORT_ABI_H_
#define AS2D_RUNTIME_ORT_ABI_H_

/// The part of ONNX Runtime's C interface that the engine uses. The runtime ships as a Python wheel
/// or an Android archive, usually without headers; its interface is a table of functions that only
/// ever grows, so slot numbers are stable. ort_abi_test.cc holds every line below against the real
/// header.

#include <cstddef>
#include <cstdint>

// Opaque types, named as the runtime names them so that the test can compare signatures.
struct OrtAllocator;
struct OrtApi;
struct OrtEnv;
struct OrtIoBinding;
struct OrtMemoryInfo;
struct OrtRunOptions;
struct OrtSession;
struct OrtSessionOptions;
struct OrtStatus;
struct OrtTensorTypeAndShapeInfo;
struct OrtTypeInfo;
struct OrtValue;

namespace as2d::ort {

#ifdef _WIN32
#error "The C interface has another calling convention and path type on Windows; not supported yet"
#endif

/// Lowest version of the interface whose table has every entry below: the hooks for session threads
/// came last, in ONNX Runtime 1.10.
inline constexpr std::uint32_t kApiVersion = 10;

// C enumerations travel as int.
inline constexpr int kLogWarning = 2;
inline constexpr int kArenaAllocator = 1;  // OrtAllocatorType
inline constexpr int kMemTypeDefault = 0;  // OrtMemType
inline constexpr int kOnnxTypeTensor = 1;  // ONNXType
inline constexpr int kExecutionSequential = 0;
inline constexpr int kOptimizeNone = 0;
inline constexpr int kOptimizeBasic = 1;
inline constexpr int kOptimizeExtended = 2;
inline constexpr int kOptimizeAll = 99;

/// What the library's one exported symbol, OrtGetApiBase, returns.
struct ApiBase {
  const OrtApi* (*get_api)(std::uint32_t version);  ///< Null: the library is older than `version`.
  const char* (*get_version_string)();
};

/// `parameter`, severity, category, log id, code location, message.
using LoggingFunction = void (*)(void*, int, const char*, const char*, const char*, const char*);
using WorkerFunction = void (*)(void*);
using CreateThreadFunction = void* (*)(void* options, WorkerFunction work, void* argument);
using JoinThreadFunction = void (*)(void* thread);

// ENTRY(name, slot, function type). One list, so that the test walks over the same lines and none
// can be left unchecked.
// clang-format off
#define AS2D_ORT_ENTRIES(ENTRY)                                                                    \
  ENTRY(GetErrorCode, 1, int (*)(const OrtStatus*))                                                \
  ENTRY(GetErrorMessage, 2, const char* (*)(const OrtStatus*))                                     \
  ENTRY(CreateEnvWithCustomLogger, 4,                                                              \
        OrtStatus* (*)(LoggingFunction, void*, int, const char*, OrtEnv**))                        \
  ENTRY(DisableTelemetryEvents, 6, OrtStatus* (*)(const OrtEnv*))                                  \
  ENTRY(CreateSession, 7,                                                                          \
        OrtStatus* (*)(const OrtEnv*, const char*, const OrtSessionOptions*, OrtSession**))        \
  ENTRY(Run, 9,                                                                                    \
        OrtStatus* (*)(OrtSession*, const OrtRunOptions*, const char* const*,                      \
                       const OrtValue* const*, std::size_t, const char* const*, std::size_t,       \
                       OrtValue**))                                                                \
  ENTRY(CreateSessionOptions, 10, OrtStatus* (*)(OrtSessionOptions**))                             \
  ENTRY(SetSessionExecutionMode, 13, OrtStatus* (*)(OrtSessionOptions*, int))                      \
  ENTRY(SetSessionLogSeverityLevel, 22, OrtStatus* (*)(OrtSessionOptions*, int))                   \
  ENTRY(SetSessionGraphOptimizationLevel, 23, OrtStatus* (*)(OrtSessionOptions*, int))             \
  ENTRY(SetIntraOpNumThreads, 24, OrtStatus* (*)(OrtSessionOptions*, int))                         \
  ENTRY(SessionGetInputCount, 30, OrtStatus* (*)(const OrtSession*, std::size_t*))                 \
  ENTRY(SessionGetOutputCount, 31, OrtStatus* (*)(const OrtSession*, std::size_t*))                \
  ENTRY(SessionGetInputTypeInfo, 33,                                                               \
        OrtStatus* (*)(const OrtSession*, std::size_t, OrtTypeInfo**))                             \
  ENTRY(SessionGetOutputTypeInfo, 34,                                                              \
        OrtStatus* (*)(const OrtSession*, std::size_t, OrtTypeInfo**))                             \
  ENTRY(SessionGetInputName, 36,                                                                   \
        OrtStatus* (*)(const OrtSession*, std::size_t, OrtAllocator*, char**))                     \
  ENTRY(SessionGetOutputName, 37,                                                                  \
        OrtStatus* (*)(const OrtSession*, std::size_t, OrtAllocator*, char**))                     \
  ENTRY(CreateRunOptions, 39, OrtStatus* (*)(OrtRunOptions**))                                     \
  ENTRY(RunOptionsSetTerminate, 46, OrtStatus* (*)(OrtRunOptions*))                                \
  ENTRY(RunOptionsUnsetTerminate, 47, OrtStatus* (*)(OrtRunOptions*))                              \
  ENTRY(CreateTensorWithDataAsOrtValue, 49,                                                        \
        OrtStatus* (*)(const OrtMemoryInfo*, void*, std::size_t, const std::int64_t*, std::size_t, \
                       int, OrtValue**))                                                           \
  ENTRY(GetTensorMutableData, 51, OrtStatus* (*)(OrtValue*, void**))                               \
  ENTRY(CastTypeInfoToTensorInfo, 55,                                                              \
        OrtStatus* (*)(const OrtTypeInfo*, const OrtTensorTypeAndShapeInfo**))                     \
  ENTRY(GetOnnxTypeFromTypeInfo, 56, OrtStatus* (*)(const OrtTypeInfo*, int*))                     \
  ENTRY(GetTensorElementType, 60, OrtStatus* (*)(const OrtTensorTypeAndShapeInfo*, int*))          \
  ENTRY(GetDimensionsCount, 61, OrtStatus* (*)(const OrtTensorTypeAndShapeInfo*, std::size_t*))    \
  ENTRY(GetDimensions, 62,                                                                         \
        OrtStatus* (*)(const OrtTensorTypeAndShapeInfo*, std::int64_t*, std::size_t))              \
  ENTRY(GetTensorTypeAndShape, 65, OrtStatus* (*)(const OrtValue*, OrtTensorTypeAndShapeInfo**))   \
  ENTRY(CreateCpuMemoryInfo, 69, OrtStatus* (*)(int, int, OrtMemoryInfo**))                        \
  ENTRY(AllocatorFree, 76, OrtStatus* (*)(OrtAllocator*, void*))                                   \
  ENTRY(GetAllocatorWithDefaultOptions, 78, OrtStatus* (*)(OrtAllocator**))                        \
  ENTRY(ReleaseEnv, 92, void (*)(OrtEnv*))                                                         \
  ENTRY(ReleaseStatus, 93, void (*)(OrtStatus*))                                                   \
  ENTRY(ReleaseMemoryInfo, 94, void (*)(OrtMemoryInfo*))                                           \
  ENTRY(ReleaseSession, 95, void (*)(OrtSession*))                                                 \
  ENTRY(ReleaseValue, 96, void (*)(OrtValue*))                                                     \
  ENTRY(ReleaseRunOptions, 97, void (*)(OrtRunOptions*))                                           \
  ENTRY(ReleaseTypeInfo, 98, void (*)(OrtTypeInfo*))                                               \
  ENTRY(ReleaseTensorTypeAndShapeInfo, 99, void (*)(OrtTensorTypeAndShapeInfo*))                   \
  ENTRY(ReleaseSessionOptions, 100, void (*)(OrtSessionOptions*))                                  \
  ENTRY(AddSessionConfigEntry, 130,                                                                \
        OrtStatus* (*)(OrtSessionOptions*, const char*, const char*))                              \
  ENTRY(RunWithBinding, 133,                                                                       \
        OrtStatus* (*)(OrtSession*, const OrtRunOptions*, const OrtIoBinding*))                    \
  ENTRY(CreateIoBinding, 134, OrtStatus* (*)(OrtSession*, OrtIoBinding**))                         \
  ENTRY(ReleaseIoBinding, 135, void (*)(OrtIoBinding*))                                            \
  ENTRY(BindInput, 136, OrtStatus* (*)(OrtIoBinding*, const char*, const OrtValue*))               \
  ENTRY(BindOutput, 137, OrtStatus* (*)(OrtIoBinding*, const char*, const OrtValue*))              \
  ENTRY(BindOutputToDevice, 138, OrtStatus* (*)(OrtIoBinding*, const char*, const OrtMemoryInfo*)) \
  ENTRY(GetBoundOutputValues, 140,                                                                 \
        OrtStatus* (*)(const OrtIoBinding*, OrtAllocator*, OrtValue***, std::size_t*))             \
  ENTRY(SessionOptionsSetCustomCreateThreadFn, 196,                                                \
        OrtStatus* (*)(OrtSessionOptions*, CreateThreadFunction))                                  \
  ENTRY(SessionOptionsSetCustomThreadCreationOptions, 197,                                         \
        OrtStatus* (*)(OrtSessionOptions*, void*))                                                 \
  ENTRY(SessionOptionsSetCustomJoinThreadFn, 198,                                                  \
        OrtStatus* (*)(OrtSessionOptions*, JoinThreadFunction))
// clang-format on

/// One type an entry, e.g. `entry::Run`: its slot in the table and the type of the function there.
namespace entry {
#define AS2D_ORT_DECLARE(name, slot, ...)        \
  struct name {                                  \
    static constexpr std::size_t kSlot = (slot); \
    using Function = __VA_ARGS__;                \
  };
AS2D_ORT_ENTRIES(AS2D_ORT_DECLARE)
#undef AS2D_ORT_DECLARE
}  // namespace entry

/// The table of a loaded library: `api.Call<entry::Run>(session, ...)`. Functions that return an
/// OrtStatus* give null for success; the caller owns any other value.
class Api {
 public:
  Api() = default;
  explicit Api(const OrtApi* table) : table_(reinterpret_cast<const AnyFunction*>(table)) {}

  template <typename Entry, typename... Arguments>
  auto Call(Arguments... arguments) const {
    return reinterpret_cast<typename Entry::Function>(table_[Entry::kSlot])(arguments...);
  }

 private:
  using AnyFunction = void (*)();
  const AnyFunction* table_ = nullptr;
};

}  // namespace as2d::ort

#endif  // AS2D_RUNTIME_ORT_ABI_H_
