#include "as2d/kernels/operators.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <exception>
#include <string>
#include <type_traits>
#include <vector>

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

#include "as2d/error.h"
#include "as2d/platform/crew.h"
#include "as2d/runtime/ort_abi.h"
#include "as2d/runtime/tensor.h"
#include "kernels.h"

namespace as2d {
namespace {

namespace entry = ort::entry;
using kernels::Best;
using kernels::Kernels;

constexpr std::size_t kPanel = 16;
// Beyond these the kernels' sums of 32 bits could overflow.
constexpr std::size_t kMostInputs = 1 << 16;
constexpr std::size_t kMostPositions = 1 << 16;
constexpr std::size_t kMostHeadSize = 256;

std::size_t Panels(std::size_t count) { return (count + kPanel - 1) / kPanel; }

// The runtime hands work over and takes it back in order, which ThreadSanitizer cannot see: the
// library is not instrumented. It is told here; elsewhere these are nothing.
#ifdef __SANITIZE_THREAD__
void ReleasedTo(void* object) { __tsan_release(object); }
void AcquiredFrom(void* object) { __tsan_acquire(object); }
#else
void ReleasedTo(void*) {}
void AcquiredFrom(void*) {}
#endif

/// What an operator sees of one call. The table is that of the library which calls: a process may
/// hold more than one copy of it.
class Call {
 public:
  Call(const ort::Api& api, OrtKernelContext* context) : api_(api), context_(context) {}

  template <typename T>
  struct Values {
    T* data = nullptr;
    std::vector<std::int64_t> shape;

    /// All dimensions but the last.
    std::size_t rows() const {
      std::size_t rows = 1;
      for (std::size_t i = 0; i + 1 < shape.size(); ++i) rows *= static_cast<std::size_t>(shape[i]);
      return rows;
    }
    std::size_t last() const { return shape.empty() ? 1 : static_cast<std::size_t>(shape.back()); }
    std::size_t size() const { return rows() * last(); }
    std::size_t at(std::size_t i) const { return static_cast<std::size_t>(shape.at(i)); }
  };

  template <typename T>
  Values<const T> Input(std::size_t index) const {
    const OrtValue* value = nullptr;
    Check(api_.Call<entry::KernelContext_GetInput>(static_cast<const OrtKernelContext*>(context_),
                                                   index, &value));
    if (value == nullptr) return {};
    Values<const T> values;
    // The interface has no read-only form of this call.
    values.data = static_cast<const T*>(Data(const_cast<OrtValue*>(value)));
    values.shape = ShapeOf(value);
    return values;
  }

  std::size_t inputs() const {
    std::size_t count = 0;
    Check(api_.Call<entry::KernelContext_GetInputCount>(
        static_cast<const OrtKernelContext*>(context_), &count));
    return count;
  }

  template <typename T>
  T* Output(std::size_t index, const std::vector<std::int64_t>& shape) {
    OrtValue* value = nullptr;
    Check(api_.Call<entry::KernelContext_GetOutput>(context_, index, shape.data(), shape.size(),
                                                    &value));
    return static_cast<T*>(Data(value));
  }

  /// Calls `work(i)` for i in [0, count) on the lane's threads and whoever helps it, or on the
  /// session's where there is no lane; returns when all are done.
  template <typename Work>
  void Parallel(std::size_t count, Work work) {
    if (count == 1) return work(std::size_t{0});
    struct Shared {
      Work& work;
      std::atomic<bool> failed{false};
    } shared{work};
    const auto run = [](void* object, std::size_t i) {
      AcquiredFrom(object);
      Shared& ours = *static_cast<Shared*>(object);
      try {
        ours.work(i);
      } catch (...) {  // nothing may be thrown through the runtime, least of all on its threads
        ours.failed = true;
      }
      ReleasedTo(object);
    };
    if (CrewLane* const lane = CrewLane::Current()) {
      lane->Parallel(count, run, &shared);
      if (shared.failed) throw Error("out of memory");
      return;
    }
    ReleasedTo(&shared);
    Check(api_.Call<entry::KernelContext_ParallelFor>(
        static_cast<const OrtKernelContext*>(context_),
        static_cast<void (*)(void*, std::size_t)>(run), count, std::size_t{0},
        static_cast<void*>(&shared)));
    AcquiredFrom(&shared);
    if (shared.failed) throw Error("out of memory");
  }

 private:
  void Check(OrtStatus* status) const {
    if (status == nullptr) return;
    const std::string message = api_.Call<entry::GetErrorMessage>(status);
    api_.Call<entry::ReleaseStatus>(status);
    throw Error(message);
  }

  void* Data(OrtValue* value) const {
    void* data = nullptr;
    Check(api_.Call<entry::GetTensorMutableData>(value, &data));
    return data;
  }

  std::vector<std::int64_t> ShapeOf(const OrtValue* value) const {
    OrtTensorTypeAndShapeInfo* info = nullptr;
    Check(api_.Call<entry::GetTensorTypeAndShape>(value, &info));
    std::size_t rank = 0;
    std::vector<std::int64_t> shape;
    OrtStatus* status = api_.Call<entry::GetDimensionsCount>(
        static_cast<const OrtTensorTypeAndShapeInfo*>(info), &rank);
    if (status == nullptr) {
      shape.resize(rank);
      status = api_.Call<entry::GetDimensions>(static_cast<const OrtTensorTypeAndShapeInfo*>(info),
                                               shape.data(), rank);
    }
    api_.Call<entry::ReleaseTensorTypeAndShapeInfo>(info);
    Check(status);
    return shape;
  }

  const ort::Api& api_;
  OrtKernelContext* const context_;
};

void Require(bool condition, const char* what) {
  if (!condition) throw Error(what);
}

/// Attributes of a node, read once.
class Attributes {
 public:
  Attributes(const ort::Api& api, const OrtKernelInfo* info) : api_(api), info_(info) {}

  std::size_t Number(const char* name) const {
    std::int64_t value = 0;
    if (OrtStatus* status = api_.Call<entry::KernelInfoGetAttribute_int64>(info_, name, &value)) {
      api_.Call<entry::ReleaseStatus>(status);
      throw Error(std::string("attribute '") + name + "' is missing");
    }
    Require(value > 0 && value < (1 << 20), "an attribute is out of range");
    return static_cast<std::size_t>(value);
  }

 private:
  const ort::Api& api_;
  const OrtKernelInfo* const info_;
};

class Linear {
 public:
  static constexpr const char* kName = "Linear";
  static constexpr std::array kInputs = {ElementType::kFloat32, ElementType::kInt8,
                                         ElementType::kFloat32, ElementType::kFloat32};
  static constexpr std::size_t kRequiredInputs = 3;
  static constexpr std::array kOutputs = {ElementType::kFloat32};

  explicit Linear(const Attributes&) {}

  void Compute(Call& call) const {
    const auto x = call.Input<float>(0);
    const auto weight = call.Input<std::int8_t>(1);
    const auto scale = call.Input<float>(2);
    const auto bias = call.inputs() > 3 ? call.Input<float>(3) : Call::Values<const float>();
    const std::size_t rows = x.rows();
    const std::size_t k = x.last();
    const std::size_t outputs = scale.last();
    const std::size_t panels = Panels(outputs);
    Require(weight.shape.size() == 4 && weight.at(0) == panels && weight.at(1) * 4 == k &&
                weight.at(2) == kPanel && weight.at(3) == 4,
            "Linear: the weight does not fit its input and scale");
    Require(k > 0 && k <= kMostInputs, "Linear: the number of inputs is out of range");
    Require(bias.data == nullptr || bias.size() == outputs, "Linear: the bias is not as long");
    std::vector<std::int64_t> shape = x.shape;
    shape.back() = static_cast<std::int64_t>(outputs);
    float* const y = call.Output<float>(0, shape);

    thread_local std::vector<std::int8_t> bytes;
    thread_local std::vector<kernels::QuantizedRow> quantized;
    bytes.resize(std::max(bytes.size(), rows * k));
    quantized.resize(std::max(quantized.size(), rows));
    // Workers see the caller's memory, not their own of the same name.
    std::int8_t* const q = bytes.data();
    kernels::QuantizedRow* const row_facts = quantized.data();
    const Kernels& best = Best();
    for (std::size_t row = 0; row < rows; ++row) {
      row_facts[row] = best.quantize(x.data + row * k, k, q + row * k);
    }
    // Large enough to be worth a hand-over, small enough to share out evenly.
    constexpr std::size_t kTaskBytes = 32 << 10;
    const std::size_t per_task = std::max<std::size_t>(1, kTaskBytes / (kPanel * k));
    call.Parallel((panels + per_task - 1) / per_task, [&](std::size_t task) {
      const std::size_t first = task * per_task;
      best.linear(weight.data + first * kPanel * k, std::min(per_task, panels - first),
                  first * kPanel, outputs, k, q, row_facts, rows, scale.data, bias.data, y);
    });
  }
};

/// Rows in the slots of caches: `places` i32 [R,4], lines of slot, at, shared, begin.
std::vector<kernels::Place> Places(const Call::Values<const std::int32_t>& places, std::size_t rows,
                                   std::size_t slots) {
  Require(places.shape.size() == 2 && places.at(0) == rows && places.at(1) == 4,
          "places: there must be four numbers a row");
  std::vector<kernels::Place> result(rows);
  for (std::size_t r = 0; r < rows; ++r) {
    const std::int32_t* const line = places.data + 4 * r;
    Require(std::all_of(line, line + 4, [](std::int32_t number) { return number >= 0; }),
            "places: a number is negative");
    const auto number = [&](std::size_t i) { return static_cast<std::size_t>(line[i]); };
    result[r] = {.slot = number(0), .at = number(1), .shared = number(2), .begin = number(3)};
    Require(result[r].slot < slots, "places: there is no such slot");
  }
  return result;
}

class SelfAttention {
 public:
  static constexpr const char* kName = "SelfAttention";
  static constexpr std::array kInputs = {ElementType::kFloat32, ElementType::kFloat32,
                                         ElementType::kFloat32, ElementType::kInt32};
  static constexpr std::size_t kRequiredInputs = 4;
  static constexpr std::array kOutputs = {ElementType::kFloat32, ElementType::kFloat32,
                                          ElementType::kFloat32};

  explicit SelfAttention(const Attributes& attributes) : heads_(attributes.Number("heads")) {}

  void Compute(Call& call) const {
    const auto x = call.Input<float>(0);
    const auto past_k = call.Input<float>(1);
    const auto past_v = call.Input<float>(2);
    const std::size_t rows = x.rows();
    const std::size_t width = x.last() / 3;
    const std::size_t size = width / heads_;
    Require(width * 3 == x.last() && size * heads_ == width && size % kPanel == 0,
            "SelfAttention: the heads do not fit the width");
    Require(past_k.shape.size() == 4 && past_k.shape == past_v.shape && past_k.at(1) == heads_ &&
                past_k.at(3) == size,
            "SelfAttention: the caches do not fit the heads");
    const std::size_t context = past_k.at(2);
    const std::vector<kernels::Place> places =
        Places(call.Input<std::int32_t>(3), rows, past_k.at(0));
    for (const kernels::Place& place : places) {
      Require(place.shared <= place.begin && place.begin <= place.at && place.at < context,
              "SelfAttention: a row's positions are out of order or beyond the context");
    }
    std::vector<std::int64_t> shape = x.shape;
    shape.back() = static_cast<std::int64_t>(width);
    float* const y = call.Output<float>(0, shape);
    float* const cache_k = Present(call, 1, past_k);
    float* const cache_v = Present(call, 2, past_v);
    const std::size_t head_stride = context * size;
    const std::size_t slot_stride = heads_ * head_stride;
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t head = 0; head < heads_; ++head) {
        const float* const key = x.data + r * 3 * width + width + head * size;
        const std::size_t to =
            places[r].slot * slot_stride + head * head_stride + places[r].at * size;
        std::copy_n(key, size, cache_k + to);
        std::copy_n(key + width, size, cache_v + to);
      }
    }
    constexpr std::size_t kTaskRows = 4;
    const std::size_t groups = (rows + kTaskRows - 1) / kTaskRows;
    call.Parallel(heads_ * groups, [&](std::size_t task) {
      const std::size_t head = task / groups;
      const std::size_t row = task % groups * kTaskRows;
      Best().self_attention(x.data + row * 3 * width + head * size, 3 * width, &places[row],
                            std::min(kTaskRows, rows - row), width, size,
                            cache_k + head * head_stride, cache_v + head * head_stride, slot_stride,
                            y + row * width + head * size);
    });
  }

 private:
  static float* Present(Call& call, std::size_t index, const Call::Values<const float>& past) {
    float* const present = call.Output<float>(index, past.shape);
    if (present != past.data) {
      std::memcpy(present, past.data, past.rows() * past.last() * sizeof(float));
    }
    return present;
  }

  const std::size_t heads_;
};

class QuantizeCross {
 public:
  static constexpr const char* kName = "QuantizeCross";
  static constexpr std::array kInputs = {ElementType::kFloat32, ElementType::kFloat32};
  static constexpr std::size_t kRequiredInputs = 2;
  static constexpr std::array kOutputs = {ElementType::kUint8, ElementType::kFloat32,
                                          ElementType::kInt8, ElementType::kFloat32};

  explicit QuantizeCross(const Attributes& attributes) : heads_(attributes.Number("heads")) {}

  void Compute(Call& call) const {
    const auto key = call.Input<float>(0);
    const auto value = call.Input<float>(1);
    const std::size_t positions = key.rows();
    const std::size_t width = key.last();
    const std::size_t size = width / heads_;
    Require(key.shape == value.shape && positions > 0, "QuantizeCross: keys are not like values");
    Require(size * heads_ == width && size % kPanel == 0,
            "QuantizeCross: the heads do not fit the width");
    const std::size_t padded = Panels(positions) * kPanel;
    const auto number = [](std::size_t n) { return static_cast<std::int64_t>(n); };
    auto* const key_out = call.Output<std::uint8_t>(
        0, {number(heads_), number(padded / kPanel), number(size / 4), 16, 4});
    auto* const key_scale = call.Output<float>(1, {number(heads_), number(size)});
    auto* const value_out = call.Output<std::int8_t>(
        2, {number(heads_), number(size / kPanel), number(padded / 4), 16, 4});
    auto* const value_scale = call.Output<float>(3, {number(heads_), number(size)});
    call.Parallel(heads_, [&](std::size_t head) {
      Best().quantize_cross(key.data + head * size, value.data + head * size, positions, width,
                            size, key_out + head * padded * size, key_scale + head * size,
                            value_out + head * padded * size, value_scale + head * size);
    });
  }

 private:
  const std::size_t heads_;
};

class CrossAttention {
 public:
  static constexpr const char* kName = "CrossAttention";
  static constexpr std::array kInputs = {ElementType::kFloat32, ElementType::kUint8,
                                         ElementType::kFloat32, ElementType::kInt8,
                                         ElementType::kFloat32, ElementType::kInt32};
  static constexpr std::size_t kRequiredInputs = 6;
  static constexpr std::array kOutputs = {ElementType::kFloat32};

  explicit CrossAttention(const Attributes& attributes)
      : heads_(attributes.Number("heads")), positions_(attributes.Number("positions")) {}

  void Compute(Call& call) const {
    const auto query = call.Input<float>(0);
    const auto key = call.Input<std::uint8_t>(1);
    const auto key_scale = call.Input<float>(2);
    const auto value = call.Input<std::int8_t>(3);
    const auto value_scale = call.Input<float>(4);
    const std::size_t rows = query.rows();
    const std::size_t width = query.last();
    const std::size_t size = width / heads_;
    const std::size_t padded = Panels(positions_) * kPanel;
    Require(size * heads_ == width && size % kPanel == 0 && size <= kMostHeadSize,
            "CrossAttention: the heads do not fit the width");
    Require(positions_ <= kMostPositions, "CrossAttention: too many positions");
    const std::size_t slots = key.shape.empty() ? 0 : key.at(0);
    const std::size_t elements = width * padded;
    Require(key.size() == slots * elements && value.size() == slots * elements &&
                key_scale.size() == slots * width && value_scale.size() == slots * width,
            "CrossAttention: keys and values do not fit the query");
    const std::vector<kernels::Place> places = Places(call.Input<std::int32_t>(5), rows, slots);
    const std::vector<Group> groups = GroupsOf(places);
    float* const y = call.Output<float>(0, query.shape);
    // Groups of a head are neighbours: the second finds keys and values in the cache.
    call.Parallel(heads_ * groups.size(), [&](std::size_t task) {
      const std::size_t head = task / groups.size();
      const Group& group = groups[task % groups.size()];
      const std::size_t at = group.slot * heads_ + head;
      const std::size_t to = group.row * width + head * size;
      Best().cross_attention(query.data + to, group.rows, width, size, positions_,
                             {key.data + at * padded * size, key_scale.data + at * size,
                              value.data + at * padded * size, value_scale.data + at * size},
                             y + to);
    });
  }

 private:
  /// Neighbouring rows of one slot, at most as many as the kernel takes at once.
  struct Group {
    std::size_t slot;
    std::size_t row;
    std::size_t rows;
  };

  static std::vector<Group> GroupsOf(const std::vector<kernels::Place>& places) {
    constexpr std::size_t kMost = 4;
    std::vector<Group> groups;
    for (std::size_t r = 0; r < places.size(); ++r) {
      if (!groups.empty() && groups.back().slot == places[r].slot && groups.back().rows < kMost) {
        ++groups.back().rows;
      } else {
        groups.push_back({places[r].slot, r, 1});
      }
    }
    return groups;
  }

  const std::size_t heads_;
  const std::size_t positions_;
};

class Choose {
 public:
  static constexpr const char* kName = "Choose";
  static constexpr std::array kInputs = {ElementType::kFloat32, ElementType::kFloat32};
  static constexpr std::size_t kRequiredInputs = 2;
  static constexpr std::array kOutputs = {ElementType::kInt64, ElementType::kFloat32};

  explicit Choose(const Attributes&) {}

  void Compute(Call& call) const {
    const auto logits = call.Input<float>(0);
    const auto suppress = call.Input<float>(1);
    const std::size_t n = logits.last();
    Require(!logits.shape.empty() && n > 0 && suppress.size() == n,
            "Choose: suppress is not as long as a row");
    std::vector<std::int64_t> shape = logits.shape;
    shape.pop_back();
    auto* const next = call.Output<std::int64_t>(0, shape);
    auto* const log_prob = call.Output<float>(1, shape);
    call.Parallel(logits.rows(), [&](std::size_t row) {
      Best().choose(logits.data + row * n, suppress.data, n, next + row, log_prob + row);
    });
  }
};

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
    return Guard(api, [&] { *kernel = new Kernel{api, Op(Attributes(api, info))}; });
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
  static const std::array operators = {Described<Linear>::Get(), Described<SelfAttention>::Get(),
                                       Described<QuantizeCross>::Get(),
                                       Described<CrossAttention>::Get(), Described<Choose>::Get()};
  return operators;
}

std::string_view KernelName() { return Best().name; }

}  // namespace as2d
