// Linear layers, and the choice at the end of them, as operators.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "as2d/kernels/choose.h"
#include "as2d/runtime/tensor.h"
#include "call.h"
#include "kernels.h"

namespace as2d {

/// Rows that a layer multiplies: `taps` neighbouring rows of x, around each `stride`-th of them.
struct LayerRows {
  const float* x;
  std::size_t count;
  std::size_t before;  ///< rows of x
  std::size_t width;   ///< of x
  std::size_t taps = 1;
  std::size_t stride = 1;
  kernels::Norm norm = {};  ///< none, if its gamma is null

  kernels::QuantizedRow Quantize(std::size_t row, std::int8_t* q) const {
    const std::size_t k = taps * width;
    const std::size_t middle = row * stride;
    const std::size_t half = (taps - 1) / 2;
    if (middle >= half && middle - half + taps <= before) {
      const float* const from = x + (middle - half) * width;
      if (norm.gamma != nullptr) return kernels::Best().norm_quantize(from, norm, k, q);
      return kernels::Best().quantize(from, k, q);
    }
    // At an end of the sequence, beyond which all is zero.
    std::vector<float> whole(k);
    for (std::size_t tap = 0; tap < taps; ++tap) {
      const std::size_t at = middle + tap;
      if (at < half || at - half >= before) continue;
      std::copy_n(x + (at - half) * width, width, whole.data() + tap * width);
    }
    return kernels::Best().quantize(whole.data(), k, q);
  }
};

/// Memory of a thread for rows in 8 bits.
struct QuantizedRows {
  std::vector<std::int8_t> bytes;
  std::vector<kernels::QuantizedRow> facts;

  /// Rows [first, first + count). Kernels may read a little beyond the end.
  void Take(const LayerRows& rows, std::size_t first, std::size_t count) {
    const std::size_t k = rows.taps * rows.width;
    bytes.resize(std::max(bytes.size(), count * k + 64));
    facts.resize(std::max(facts.size(), count));
    for (std::size_t row = 0; row < count; ++row) {
      facts[row] = rows.Quantize(first + row, bytes.data() + row * k);
    }
  }
};

/// So many rows go through a layer at once, and through what follows it, while they are in the
/// cache.
inline constexpr std::size_t kTaskRows = 96;

/// Few rows: what takes time is to read the weights, each once, so that these are shared out.
inline void ByPanels(Call& call, const kernels::Layer& layer, const LayerRows& rows,
                     const float* residual, float* y) {
  thread_local QuantizedRows memory;
  memory.Take(rows, 0, rows.count);
  // Workers see the caller's memory, not their own of the same name.
  const QuantizedRows& taken = memory;
  // Large enough to be worth a hand-over, small enough to share out evenly.
  constexpr std::size_t kTaskBytes = 32 << 10;
  const std::size_t panels = Panels(layer.outputs);
  const std::size_t per_task = std::max<std::size_t>(2, kTaskBytes / (kPanel * layer.k));
  call.Parallel((panels + per_task - 1) / per_task, [&](std::size_t task) {
    const std::size_t first = task * per_task;
    kernels::Best().linear(layer, first, std::min(per_task, panels - first), taken.bytes.data(),
                           taken.facts.data(), rows.count, residual, y);
  });
}

/// Some of many rows, through all of a layer; y and residual are those of row 0.
inline void ByRows(const kernels::Layer& layer, const LayerRows& rows, std::size_t first,
                   std::size_t count, const float* residual, float* y) {
  thread_local QuantizedRows memory;
  memory.Take(rows, first, count);
  const std::size_t at = first * layer.outputs;
  kernels::Best().linear(layer, 0, Panels(layer.outputs), memory.bytes.data(), memory.facts.data(),
                         count, residual == nullptr ? nullptr : residual + at, y + at);
}

/// Calls `work(first, count)` for pieces of `rows` rows.
template <typename Work>
void ParallelRows(Call& call, std::size_t rows, Work work) {
  call.Parallel((rows + kTaskRows - 1) / kTaskRows, [&](std::size_t task) {
    const std::size_t first = task * kTaskRows;
    work(first, std::min(kTaskRows, rows - first));
  });
}

/// The layer of these inputs, checked.
inline kernels::Layer LayerOf(const Call::Values<const std::int8_t>& weight,
                              const Call::Values<const float>& scale,
                              const Call::Values<const float>& bias, std::size_t k, bool gelu) {
  constexpr std::size_t kMostInputs = 1 << 16;  // beyond it, sums of 32 bits could overflow
  const std::size_t outputs = scale.last();
  Require(weight.shape.size() == 4 && weight.at(0) == Panels(outputs) && weight.at(1) * 4 == k &&
              weight.at(2) == kPanel && weight.at(3) == 4,
          "the weight does not fit its input and scale");
  Require(k > 0 && k <= kMostInputs, "the number of inputs is out of range");
  Require(bias.data == nullptr || bias.size() == outputs, "the bias is not as long");
  return {.weight = weight.data,
          .scale = scale.data,
          .bias = bias.data,
          .outputs = outputs,
          .k = k,
          .gelu = gelu};
}

class Linear {
 public:
  static constexpr const char* kName = "Linear";
  static constexpr std::array kInputs = {
      ElementType::kFloat32, ElementType::kInt8,    ElementType::kFloat32, ElementType::kFloat32,
      ElementType::kFloat32, ElementType::kFloat32, ElementType::kFloat32};
  static constexpr std::size_t kRequiredInputs = 3;
  static constexpr std::array kOutputs = {ElementType::kFloat32};

  explicit Linear(const Attributes& attributes)
      : taps_(attributes.Number("taps", 1)),
        stride_(attributes.Number("stride", 1)),
        gelu_(attributes.Number("gelu", 0) != 0) {
    Require(taps_ % 2 == 1 && stride_ > 0, "taps have no middle, or the stride is zero");
  }

  void Compute(Call& call) const {
    const auto x = call.Input<float>(0);
    const std::size_t k = x.last() * taps_;
    const kernels::Layer layer =
        LayerOf(call.Input<std::int8_t>(1), call.Input<float>(2), call.Input<float>(3), k, gelu_);
    const auto gamma = call.Input<float>(4);
    const auto beta = call.Input<float>(5);
    const auto residual = call.Input<float>(6);
    Require((gamma.data == nullptr) == (beta.data == nullptr) &&
                (gamma.data == nullptr || (taps_ == 1 && gamma.size() == k && beta.size() == k)),
            "the norm is not as wide as the input");
    LayerRows rows = {.x = x.data,
                      .count = x.rows(),
                      .before = x.rows(),
                      .width = x.last(),
                      .taps = taps_,
                      .stride = stride_,
                      .norm = {gamma.data, beta.data}};
    std::vector<std::int64_t> shape = x.shape;
    if (taps_ > 1 || stride_ > 1) {
      Require(shape.size() == 3 && shape[0] == 1, "taps are of one sequence");
      rows.count = (rows.before + stride_ - 1) / stride_;
      shape[1] = static_cast<std::int64_t>(rows.count);
    }
    shape.back() = static_cast<std::int64_t>(layer.outputs);
    Require(residual.data == nullptr ||
                (residual.last() == layer.outputs && residual.rows() >= rows.count),
            "the residual does not fit the output");
    float* const y = call.Output<float>(0, shape);
    if (rows.count <= kTaskRows) {
      ByPanels(call, layer, rows, residual.data, y);
    } else {
      ParallelRows(call, rows.count, [&](std::size_t first, std::size_t count) {
        ByRows(layer, rows, first, count, residual.data, y);
      });
    }
  }

 private:
  const std::size_t taps_;
  const std::size_t stride_;
  const bool gelu_;
};

/// Two layers with a norm before, GELU between and the input added after them. One operator, so
/// that what is between them, which is wide, does not leave the cache.
class FeedForward {
 public:
  static constexpr const char* kName = "FeedForward";
  static constexpr std::array kInputs = {
      ElementType::kFloat32, ElementType::kFloat32, ElementType::kFloat32,
      ElementType::kInt8,    ElementType::kFloat32, ElementType::kFloat32,
      ElementType::kInt8,    ElementType::kFloat32, ElementType::kFloat32};
  static constexpr std::size_t kRequiredInputs = kInputs.size();
  static constexpr std::array kOutputs = {ElementType::kFloat32};

  explicit FeedForward(const Attributes&) {}

  void Compute(Call& call) const {
    const auto x = call.Input<float>(0);
    const auto gamma = call.Input<float>(1);
    const auto beta = call.Input<float>(2);
    const std::size_t width = x.last();
    const kernels::Layer widen = LayerOf(call.Input<std::int8_t>(3), call.Input<float>(4),
                                         call.Input<float>(5), width, true);
    const kernels::Layer narrow = LayerOf(call.Input<std::int8_t>(6), call.Input<float>(7),
                                          call.Input<float>(8), widen.outputs, false);
    Require(gamma.size() == width && beta.size() == width && narrow.outputs == width,
            "the norm or the output is not as wide as the input");
    float* const y = call.Output<float>(0, x.shape);
    LayerRows rows = Rows(x.data, x.rows(), width);
    rows.norm = {gamma.data, beta.data};
    if (rows.count <= kTaskRows) {
      float* const wide = Between(rows.count * widen.outputs);
      ByPanels(call, widen, rows, nullptr, wide);
      ByPanels(call, narrow, Rows(wide, rows.count, widen.outputs), x.data, y);
    } else {
      ParallelRows(call, rows.count, [&](std::size_t first, std::size_t count) {
        const std::size_t at = first * width;
        LayerRows some = Rows(x.data + at, count, width);
        some.norm = rows.norm;
        float* const wide = Between(count * widen.outputs);
        ByRows(widen, some, 0, count, nullptr, wide);
        ByRows(narrow, Rows(wide, count, widen.outputs), 0, count, x.data + at, y + at);
      });
    }
  }

 private:
  static LayerRows Rows(const float* x, std::size_t count, std::size_t width) {
    return {.x = x, .count = count, .before = count, .width = width};
  }

  /// Memory of this thread for what is between the layers.
  static float* Between(std::size_t size) {
    thread_local std::vector<float> memory;
    memory.resize(std::max(memory.size(), size));
    return memory.data();
  }
};

class Choose {
 public:
  static constexpr const char* kName = "Choose";
  static constexpr std::array kInputs = {ElementType::kFloat32, ElementType::kFloat32,
                                         ElementType::kInt32, ElementType::kFloat32};
  static constexpr std::size_t kRequiredInputs = 2;
  static constexpr std::array kOutputs = {ElementType::kInt64, ElementType::kFloat32};

  explicit Choose(const Attributes&) {}

  void Compute(Call& call) const {
    const auto logits = call.Input<float>(0);
    const auto suppress = call.Input<float>(1);
    const auto choices = call.Input<std::int32_t>(2);
    const auto temperatures = call.Input<float>(3);
    const std::size_t n = logits.last();
    Require(!logits.shape.empty() && n > 0 && suppress.size() == n,
            "suppress is not as long as a row");
    Require(choices.data == nullptr ||
                (choices.last() == kChoiceColumns && choices.rows() == logits.rows()),
            "not a line of choices for every row");
    Require(temperatures.data == nullptr || temperatures.size() == logits.rows(),
            "not a temperature for every row");
    std::vector<std::int64_t> shape = logits.shape;
    shape.pop_back();
    auto* const next = call.Output<std::int64_t>(0, shape);
    auto* const log_prob = call.Output<float>(1, shape);
    call.Parallel(logits.rows(), [&](std::size_t row) {
      const Chosen chosen = ChooseToken(
          {logits.data + row * n, n}, {suppress.data, n},
          choices.data == nullptr ? ChoiceLine(kAnyToken)
                                  : ChoiceLine(choices.data + row * kChoiceColumns, kChoiceColumns),
          temperatures.data == nullptr ? 0.0F : temperatures.data[row]);
      next[row] = chosen.token;
      log_prob[row] = chosen.log_probability;
    });
  }

 private:
  static constexpr std::array<std::int32_t, kChoiceColumns> kAnyToken = {0, -1, -1, -1, -1, 0};
};

}  // namespace as2d
