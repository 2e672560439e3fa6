// Lets the Python package of ONNX Runtime use the operators as well:
// SessionOptions.register_custom_ops_library(path of this module).
#include "as2d/kernels/operators.h"
#include "as2d/runtime/ort_abi.h"

// Called by the library with its own table; a copy of the library other than the engine's.
extern "C" [[gnu::visibility("default")]] OrtStatus* RegisterCustomOps(
    OrtSessionOptions* options, const as2d::ort::ApiBase* base) {
  namespace entry = as2d::ort::entry;
  const as2d::ort::Api api(base->get_api(as2d::ort::kApiVersion));
  OrtCustomOpDomain* domain = nullptr;
  if (OrtStatus* status = api.Call<entry::CreateCustomOpDomain>(as2d::kOperatorDomain, &domain)) {
    return status;
  }
  for (const OrtCustomOp* const op : as2d::Operators()) {
    if (OrtStatus* status = api.Call<entry::CustomOpDomain_Add>(domain, op)) return status;
  }
  // It must outlive every session made with these options, which only their owner knows: it is a
  // few hundred bytes, and stays.
  return api.Call<entry::AddCustomOpDomain>(options, domain);
}
