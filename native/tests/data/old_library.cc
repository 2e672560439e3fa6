// Stands for an ONNX Runtime from before the interface that the engine needs, for
// runtime_open_test.
#include "as2d/runtime/ort_abi.h"

namespace {

const OrtApi* GetApi(std::uint32_t) { return nullptr; }
const char* GetVersionString() { return "1.9.1"; }
constexpr as2d::ort::ApiBase kBase{&GetApi, &GetVersionString};

}  // namespace

extern "C" const as2d::ort::ApiBase* OrtGetApiBase() { return &kBase; }
