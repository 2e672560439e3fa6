// Our declarations of ONNX Runtime's C interface against its real header: whatever is wrong does
// not compile. The few checks at run time say that the loaded library agrees.

#include "as2d/runtime/ort_abi.h"

#include <gtest/gtest.h>
#include <onnxruntime_c_api.h>

#include <cstddef>
#include <string>
#include <type_traits>

#include "as2d/runtime/tensor.h"
#include "runtime_for_test.h"

namespace as2d {
namespace {

// A type of the header as we write it: enumerations as int, thread handles as void*, function types
// without noexcept. Anything else must be the same type on both sides.
template <typename T, bool kEnum = std::is_enum_v<T>>
struct Ours {
  using Type = T;
};
template <typename T>
struct Ours<T, true> {
  static_assert(sizeof(T) == sizeof(int));
  using Type = int;
};
template <typename T>
struct Ours<T*, false> {
  using Type = typename Ours<T>::Type*;
};
template <typename T>
struct Ours<const T, false> {
  using Type = const typename Ours<T>::Type;
};
template <>
struct Ours<OrtCustomThreadHandle, false> {
  using Type = void*;
};
template <typename Result, typename... Arguments>
struct Ours<Result(Arguments...), false> {
  using Type = typename Ours<Result>::Type(typename Ours<Arguments>::Type...);
};
template <typename Result, typename... Arguments>
struct Ours<Result(Arguments...) noexcept, false> {
  using Type = typename Ours<Result>::Type(typename Ours<Arguments>::Type...);
};

#define AS2D_CHECK_ENTRY(name, slot, ...)                                                      \
  static_assert(offsetof(OrtApi, name) == (slot) * sizeof(void*), #name ": another slot");     \
  static_assert(                                                                               \
      std::is_same_v<typename Ours<decltype(OrtApi::name)>::Type, ort::entry::name::Function>, \
      #name ": another signature");
AS2D_ORT_ENTRIES(AS2D_CHECK_ENTRY)
#undef AS2D_CHECK_ENTRY

static_assert(sizeof(ort::ApiBase) == sizeof(OrtApiBase));
static_assert(offsetof(ort::ApiBase, get_api) == offsetof(OrtApiBase, GetApi));
static_assert(offsetof(ort::ApiBase, get_version_string) == offsetof(OrtApiBase, GetVersionString));
static_assert(
    std::is_same_v<Ours<decltype(OrtApiBase::GetApi)>::Type, decltype(ort::ApiBase::get_api)>);
static_assert(std::is_same_v<Ours<decltype(OrtApiBase::GetVersionString)>::Type,
                             decltype(ort::ApiBase::get_version_string)>);
static_assert(std::is_same_v<ORTCHAR_T, char>);

#define AS2D_CHECK_FIELD(ours, theirs) \
  static_assert(offsetof(ort::CustomOp, ours) == offsetof(OrtCustomOp, theirs))
AS2D_CHECK_FIELD(version, version);
AS2D_CHECK_FIELD(create_kernel, CreateKernel);
AS2D_CHECK_FIELD(get_name, GetName);
AS2D_CHECK_FIELD(get_execution_provider, GetExecutionProviderType);
AS2D_CHECK_FIELD(get_input_type, GetInputType);
AS2D_CHECK_FIELD(get_input_count, GetInputTypeCount);
AS2D_CHECK_FIELD(get_output_type, GetOutputType);
AS2D_CHECK_FIELD(get_output_count, GetOutputTypeCount);
AS2D_CHECK_FIELD(compute, KernelCompute);
AS2D_CHECK_FIELD(destroy_kernel, KernelDestroy);
AS2D_CHECK_FIELD(get_input_characteristic, GetInputCharacteristic);
AS2D_CHECK_FIELD(get_output_characteristic, GetOutputCharacteristic);
AS2D_CHECK_FIELD(get_input_memory_type, GetInputMemoryType);
AS2D_CHECK_FIELD(get_variadic_input_least, GetVariadicInputMinArity);
AS2D_CHECK_FIELD(get_variadic_input_homogeneous, GetVariadicInputHomogeneity);
AS2D_CHECK_FIELD(get_variadic_output_least, GetVariadicOutputMinArity);
AS2D_CHECK_FIELD(get_variadic_output_homogeneous, GetVariadicOutputHomogeneity);
AS2D_CHECK_FIELD(create_kernel_with_status, CreateKernelV2);
AS2D_CHECK_FIELD(compute_with_status, KernelComputeV2);
AS2D_CHECK_FIELD(infer_shapes, InferOutputShapeFn);
AS2D_CHECK_FIELD(get_start_version, GetStartVersion);
AS2D_CHECK_FIELD(get_end_version, GetEndVersion);
#undef AS2D_CHECK_FIELD

static_assert(ort::kLogWarning == ORT_LOGGING_LEVEL_WARNING);
static_assert(ort::kArenaAllocator == OrtArenaAllocator);
static_assert(ort::kMemTypeDefault == OrtMemTypeDefault);
static_assert(ort::kOnnxTypeTensor == ONNX_TYPE_TENSOR);
static_assert(ort::kExecutionSequential == ORT_SEQUENTIAL);
static_assert(ort::kOptimizeNone == ORT_DISABLE_ALL);
static_assert(ort::kOptimizeBasic == ORT_ENABLE_BASIC);
static_assert(ort::kOptimizeExtended == ORT_ENABLE_EXTENDED);
static_assert(ort::kOptimizeAll == ORT_ENABLE_ALL);
static_assert(ort::kFail == ORT_FAIL);
static_assert(ort::kRequired == INPUT_OUTPUT_REQUIRED);
static_assert(ort::kOptional == INPUT_OUTPUT_OPTIONAL);

constexpr int Onnx(ElementType type) { return static_cast<int>(type); }
static_assert(Onnx(ElementType::kUnknown) == ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED);
static_assert(Onnx(ElementType::kFloat32) == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT);
static_assert(Onnx(ElementType::kInt8) == ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8);
static_assert(Onnx(ElementType::kUint8) == ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8);
static_assert(Onnx(ElementType::kInt32) == ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32);
static_assert(Onnx(ElementType::kInt64) == ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64);
static_assert(Onnx(ElementType::kBool) == ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL);

static_assert(ort::kApiVersion <= ORT_API_VERSION);

TEST(OrtAbi, TheLibraryIsAtLeastAsNewAsTheHeader) {
  EXPECT_GE(TestRuntime()->minor_version(), ORT_API_VERSION);
}

}  // namespace
}  // namespace as2d
