#pragma once

/// The part of ONNX Runtime's C interface that the engine uses. The runtime ships as a Python wheel
/// or an Android archive, usually without headers; its interface is a table of functions that only
/// ever grows, so slot numbers are stable. ort_abi_test.cc holds every line below against the real
/// header.

#include <cstddef>
#include <cstdint>

// Opaque types, named as the runtime names them so that the test can compare signatures.
struct OrtAllocator;
struct OrtApi;
struct OrtCustomOp;
struct OrtCustomOpDomain;
struct OrtEnv;
struct OrtIoBinding;
struct OrtKernelContext;
struct OrtKernelInfo;
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

/// Lowest version of the interface whose table has every entry below: parallel loops in operators
/// came last, in ONNX Runtime 1.17.
inline constexpr std::uint32_t kApiVersion = 17;

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
inline constexpr int kFail = 1;      // OrtErrorCode
inline constexpr int kRequired = 0;  // OrtCustomOpInputOutputCharacteristic
inline constexpr int kOptional = 1;

/// What the library's one exported symbol, OrtGetApiBase, returns.
struct ApiBase {
  const OrtApi* (*get_api)(std::uint32_t version);  ///< Null: the library is older than `version`.
  const char* (*get_version_string)();
};

/// An operator of ours: OrtCustomOp as far as interface version 17 reads it. Functions left null
/// are those that it may do without.
struct CustomOp {
  std::uint32_t version = kApiVersion;
  void* (*create_kernel)(const OrtCustomOp*, const OrtApi*, const OrtKernelInfo*) = nullptr;
  const char* (*get_name)(const OrtCustomOp*) = nullptr;
  const char* (*get_execution_provider)(const OrtCustomOp*) = nullptr;  ///< Returns null: CPU.
  int (*get_input_type)(const OrtCustomOp*, std::size_t) = nullptr;
  std::size_t (*get_input_count)(const OrtCustomOp*) = nullptr;
  int (*get_output_type)(const OrtCustomOp*, std::size_t) = nullptr;
  std::size_t (*get_output_count)(const OrtCustomOp*) = nullptr;
  void (*compute)(void*, OrtKernelContext*) = nullptr;
  void (*destroy_kernel)(void*) = nullptr;
  int (*get_input_characteristic)(const OrtCustomOp*, std::size_t) = nullptr;
  int (*get_output_characteristic)(const OrtCustomOp*, std::size_t) = nullptr;
  int (*get_input_memory_type)(const OrtCustomOp*, std::size_t) = nullptr;
  int (*get_variadic_input_least)(const OrtCustomOp*) = nullptr;
  int (*get_variadic_input_homogeneous)(const OrtCustomOp*) = nullptr;
  int (*get_variadic_output_least)(const OrtCustomOp*) = nullptr;
  int (*get_variadic_output_homogeneous)(const OrtCustomOp*) = nullptr;
  OrtStatus* (*create_kernel_with_status)(const OrtCustomOp*, const OrtApi*, const OrtKernelInfo*,
                                          void**) = nullptr;
  OrtStatus* (*compute_with_status)(void*, OrtKernelContext*) = nullptr;
  void* infer_shapes = nullptr;
  int (*get_start_version)(const OrtCustomOp*) = nullptr;
  int (*get_end_version)(const OrtCustomOp*) = nullptr;
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
  ENTRY(CreateStatus, 0, OrtStatus* (*)(int, const char*))                                         \
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
  ENTRY(CreateCustomOpDomain, 26, OrtStatus* (*)(const char*, OrtCustomOpDomain**))                \
  ENTRY(CustomOpDomain_Add, 27, OrtStatus* (*)(OrtCustomOpDomain*, const OrtCustomOp*))            \
  ENTRY(AddCustomOpDomain, 28, OrtStatus* (*)(OrtSessionOptions*, OrtCustomOpDomain*))             \
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
  ENTRY(KernelInfoGetAttribute_int64, 86,                                                          \
        OrtStatus* (*)(const OrtKernelInfo*, const char*, std::int64_t*))                          \
  ENTRY(KernelContext_GetInputCount, 88, OrtStatus* (*)(const OrtKernelContext*, std::size_t*))    \
  ENTRY(KernelContext_GetInput, 90,                                                                \
        OrtStatus* (*)(const OrtKernelContext*, std::size_t, const OrtValue**))                    \
  ENTRY(KernelContext_GetOutput, 91,                                                               \
        OrtStatus* (*)(OrtKernelContext*, std::size_t, const std::int64_t*, std::size_t,           \
                       OrtValue**))                                                                \
  ENTRY(ReleaseEnv, 92, void (*)(OrtEnv*))                                                         \
  ENTRY(ReleaseStatus, 93, void (*)(OrtStatus*))                                                   \
  ENTRY(ReleaseMemoryInfo, 94, void (*)(OrtMemoryInfo*))                                           \
  ENTRY(ReleaseSession, 95, void (*)(OrtSession*))                                                 \
  ENTRY(ReleaseValue, 96, void (*)(OrtValue*))                                                     \
  ENTRY(ReleaseRunOptions, 97, void (*)(OrtRunOptions*))                                           \
  ENTRY(ReleaseTypeInfo, 98, void (*)(OrtTypeInfo*))                                               \
  ENTRY(ReleaseTensorTypeAndShapeInfo, 99, void (*)(OrtTensorTypeAndShapeInfo*))                   \
  ENTRY(ReleaseSessionOptions, 100, void (*)(OrtSessionOptions*))                                  \
  ENTRY(ReleaseCustomOpDomain, 101, void (*)(OrtCustomOpDomain*))                                  \
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
        OrtStatus* (*)(OrtSessionOptions*, JoinThreadFunction))                                    \
  ENTRY(KernelContext_ParallelFor, 274,                                                            \
        OrtStatus* (*)(const OrtKernelContext*, void (*)(void*, std::size_t), std::size_t,         \
                       std::size_t, void*))
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
