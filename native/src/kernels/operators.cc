#include "as2d/kernels/operators.h"

#include <array>
#include <exception>
#include <string>

#include "attention_operators.h"
#include "block_operators.h"
#include "call.h"
#include "kernels.h"
#include "linear_operators.h"
#include "log_mel_operator.h"

namespace as2d {
namespace {

/// An operator class as the table of functions that the runtime wants.
template <typename Op>
class Described {
 public:
  static const OrtCustomOp* Get() {
    static const ort::CustomOp description = Describe();
    return reinterpret_cast<const OrtCustomOp*>(&description);
  }

 private:
  struct Kernel {
    ort::Api api;
    Op op;
  };

  static ort::CustomOp Describe() {
    ort::CustomOp op;
    op.get_name = [](const OrtCustomOp*) { return Op::kName; };
    op.get_execution_provider = [](const OrtCustomOp*) -> const char* { return nullptr; };
    op.get_input_type = [](const OrtCustomOp*, std::size_t i) {
      return static_cast<int>(Op::kInputs.at(i));
    };
    op.get_input_count = [](const OrtCustomOp*) { return Op::kInputs.size(); };
    op.get_output_type = [](const OrtCustomOp*, std::size_t i) {
      return static_cast<int>(Op::kOutputs.at(i));
    };
    op.get_output_count = [](const OrtCustomOp*) { return Op::kOutputs.size(); };
    op.get_input_characteristic = [](const OrtCustomOp*, std::size_t i) {
      return i < Op::kRequiredInputs ? ort::kRequired : ort::kOptional;
    };
    op.get_output_characteristic = [](const OrtCustomOp*, std::size_t) { return ort::kRequired; };
    op.get_input_memory_type = [](const OrtCustomOp*, std::size_t) { return ort::kMemTypeDefault; };
    op.get_start_version = [](const OrtCustomOp*) { return 1; };
    op.get_end_version = [](const OrtCustomOp*) { return 1; };
    op.create_kernel_with_status = &Create;
    op.compute_with_status = &Compute;
    op.destroy_kernel = [](void* kernel) { delete static_cast<Kernel*>(kernel); };
    return op;
  }

  static OrtStatus* Create(const OrtCustomOp*, const OrtApi* table, const OrtKernelInfo* info,
                           void** kernel) {
    const ort::Api api(table);
    return Guard(api, [&] {
      kernels::Best();  // what is wrong with the choice of kernels is told now
      *kernel = new Kernel{api, Op(Attributes(api, info))};
    });
  }

  static OrtStatus* Compute(void* kernel, OrtKernelContext* context) {
    const Kernel& ours = *static_cast<const Kernel*>(kernel);
    return Guard(ours.api, [&] {
      Call call(ours.api, context);
      ours.op.Compute(call);
    });
  }

  /// Nothing may be thrown through the runtime.
  template <typename Work>
  static OrtStatus* Guard(const ort::Api& api, Work work) {
    std::string message;
    try {
      work();
      return nullptr;
    } catch (const std::exception& error) {
      message = std::string(Op::kName) + ": " + error.what();
    }
    return api.Call<entry::CreateStatus>(ort::kFail, message.c_str());
  }
};

}  // namespace

std::span<const OrtCustomOp* const> Operators() {
  static const std::array operators = {
      Described<LogMel>::Get(),          Described<Linear>::Get(),
      Described<FeedForward>::Get(),     Described<Attention>::Get(),
      Described<QuantizeCross>::Get(),   Described<SelfAttention>::Get(),
      Described<CrossAttention>::Get(),  Described<Choose>::Get(),
      Described<BlockLinear>::Get(),     Described<BlockRows>::Get(),
      Described<GroupedAttention>::Get()};
  return operators;
}

std::string_view KernelName() { return kernels::Best().name; }

}  // namespace as2d
