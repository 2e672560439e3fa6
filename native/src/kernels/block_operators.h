// Operators of language models: layers of weights in blocks, and grouped attention.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "as2d/runtime/tensor.h"
#include "attention_operators.h"
#include "call.h"
#include "half.h"
#include "kernels.h"

namespace as2d {

/// How weights in blocks lie in memory (blocks-inl.h says it in full).
struct BlockLayout {
  std::size_t bits;
  std::size_t inputs;  ///< of a group of blocks ...
  std::size_t bytes;   ///< ... and what it takes for the 16 outputs of a panel

  static BlockLayout Of(std::size_t bits) {
    Require(bits == 4 || bits == 6 || bits == 8, "weights have 4, 6 or 8 bits");
    if (bits == 8) return {8, 64, 1088};
    return {bits, 256, bits == 4 ? std::size_t{2368} : std::size_t{3392}};
  }

  std::size_t PanelBytes(std::size_t k) const { return k / inputs * bytes; }

  /// `weight` u8 [panels, groups, bytes], of `k` inputs.
  void Check(const Call::Values<const std::uint8_t>& weight, std::size_t k) const {
    Require(k > 0 && k % inputs == 0 && weight.shape.size() == 3 && weight.at(0) > 0 &&
                weight.at(1) == k / inputs && weight.at(2) == bytes,
            "the weight does not fit its input");
  }
};

/// Memory of a thread for rows in blocks.
class BlockMemory {
 public:
  kernels::BlockedRows For(std::size_t count, std::size_t k) {
    const std::size_t blocks = count * k / kernels::kBlock;
    q_.resize(std::max(q_.size(), count * k));
    scale_.resize(std::max(scale_.size(), blocks));
    total_.resize(std::max(total_.size(), blocks));
    offset_.resize(std::max(offset_.size(), blocks));
    halves_.resize(std::max(halves_.size(), 2 * blocks));
    return {.count = count,
            .q = q_.data(),
            .scale = scale_.data(),
            .total = total_.data(),
            .offset = offset_.data(),
            .halves = halves_.data()};
  }

 private:
  std::vector<std::int8_t> q_;
  std::vector<float> scale_;
  std::vector<float> total_;
  std::vector<std::int32_t> offset_;
  std::vector<std::int32_t> halves_;
};

class BlockLinear {
 public:
  static constexpr const char* kName = "BlockLinear";
  static constexpr std::array kInputs = {ElementType::kFloat32, ElementType::kUint8,
                                         ElementType::kFloat32, ElementType::kFloat32,
                                         ElementType::kFloat32};
  static constexpr std::size_t kRequiredInputs = 2;
  static constexpr std::array kOutputs = {ElementType::kFloat32};

  explicit BlockLinear(const Attributes& attributes)
      : layout_(BlockLayout::Of(attributes.Number("bits"))),
        width_(attributes.Number("width")),
        gated_(attributes.Number("gated", 0) != 0),
        epsilon_(static_cast<float>(attributes.Number("epsilon", 0)) * 1e-9F) {}

  void Compute(Call& call) const {
    const auto x = call.Input<float>(0);
    const auto weight = call.Input<std::uint8_t>(1);
    const auto bias = call.Input<float>(2);
    const auto gamma = call.Input<float>(3);
    const auto residual = call.Input<float>(4);
    const std::size_t k = x.last();
    const std::size_t rows = x.rows();
    layout_.Check(weight, k);
    const std::size_t panels = weight.at(0);
    Require(panels == (gated_ ? 2 : 1) * Panels(width_), "the weight does not have these outputs");
    Require(bias.data == nullptr || (bias.size() == width_ && !gated_), "the bias is not as long");
    Require(gamma.data == nullptr || gamma.size() == k, "the norm is not as wide as the input");
    std::vector<std::int64_t> shape = x.shape;
    shape.back() = static_cast<std::int64_t>(width_);
    Require(residual.data == nullptr || (residual.shape == shape && !gated_),
            "the residual does not fit the output");
    float* const y = call.Output<float>(0, shape);
    if (rows == 0) return;

    thread_local BlockMemory memory;
    const kernels::BlockedRows blocked = memory.For(rows, k);
    const kernels::RmsNorm norm = {gamma.data, epsilon_};
    constexpr std::size_t kRowsAtOnce = 8;
    call.Parallel((rows + kRowsAtOnce - 1) / kRowsAtOnce, [&](std::size_t task) {
      const std::size_t end = std::min(rows, (task + 1) * kRowsAtOnce);
      for (std::size_t row = task * kRowsAtOnce; row < end; ++row) {
        kernels::Best().quantize_blocks(x.data + row * k, norm, k, blocked, row);
      }
    });
    const kernels::BlockLayer layer = {.weight = weight.data,
                                       .bits = layout_.bits,
                                       .bias = bias.data,
                                       .outputs = width_,
                                       .k = k,
                                       .gated = gated_};
    // Large enough to be worth a hand-over, small enough to share out evenly.
    constexpr std::size_t kTaskBytes = 64 << 10;
    const std::size_t per_task =
        std::max<std::size_t>(1, kTaskBytes / layout_.PanelBytes(k) / 2) * 2;
    call.Parallel((panels + per_task - 1) / per_task, [&](std::size_t task) {
      const std::size_t first = task * per_task;
      kernels::Best().block_linear(layer, first, std::min(per_task, panels - first), blocked,
                                   residual.data, y);
    });
  }

 private:
  const BlockLayout layout_;
  const std::size_t width_;
  const bool gated_;
  const float epsilon_;
};

/// Rows of a table whose layout is that of a layer's weights: its outputs are looked up.
class BlockRows {
 public:
  static constexpr const char* kName = "BlockRows";
  static constexpr std::array kInputs = {ElementType::kInt64, ElementType::kUint8};
  static constexpr std::size_t kRequiredInputs = kInputs.size();
  static constexpr std::array kOutputs = {ElementType::kFloat32};

  explicit BlockRows(const Attributes& attributes)
      : layout_(BlockLayout::Of(attributes.Number("bits"))), width_(attributes.Number("width")) {}

  void Compute(Call& call) const {
    const auto ids = call.Input<std::int64_t>(0);
    const auto weight = call.Input<std::uint8_t>(1);
    layout_.Check(weight, width_);
    const auto count = static_cast<std::int64_t>(weight.at(0) * kPanel);
    std::vector<std::int64_t> shape = ids.shape;
    shape.push_back(static_cast<std::int64_t>(width_));
    float* y = call.Output<float>(0, shape);
    for (std::size_t i = 0; i < ids.size(); ++i, y += width_) {
      const std::int64_t id = ids.data[i];
      Require(id >= 0 && id < count, "the table has no such row");
      const auto row = static_cast<std::size_t>(id);
      const std::uint8_t* group = weight.data + row / kPanel * layout_.PanelBytes(width_);
      for (std::size_t at = 0; at < width_; at += layout_.inputs, group += layout_.bytes) {
        if (layout_.bits == 4) {
          FourBits(group, row % kPanel, y + at);
        } else if (layout_.bits == 6) {
          SixBits(group, row % kPanel, y + at);
        } else {
          EightBits(group, row % kPanel, y + at);
        }
      }
    }
  }

 private:
  static float Half(const std::uint8_t* halves, std::size_t index) {
    std::uint16_t half;
    std::memcpy(&half, halves + 2 * index, sizeof half);
    return kernels::FloatOfHalf(half);
  }

  static void FourBits(const std::uint8_t* group, std::size_t lane, float* y) {
    constexpr std::size_t kBlocks = 8;
    const float unit = Half(group, lane);
    const float least = Half(group + 32, lane);
    const std::uint8_t* const scales = group + 64;
    const std::uint8_t* const nibbles = scales + 2 * kBlocks * kPanel;
    for (std::size_t i = 0; i < kBlocks * kernels::kBlock; ++i) {
      const std::size_t block = i / kernels::kBlock;
      const std::uint8_t both = nibbles[i / 8 * 64 + lane * 4 + i % 4];
      const int nibble = i % 8 < 4 ? both & 15 : both >> 4;
      y[i] = unit * static_cast<float>(scales[block * kPanel + lane] * nibble) -
             least * static_cast<float>(scales[(kBlocks + block) * kPanel + lane]);
    }
  }

  static void SixBits(const std::uint8_t* group, std::size_t lane, float* y) {
    constexpr std::size_t kInputs = 256;
    const float unit = Half(group, lane);
    const std::uint8_t* const scales = group + 64;
    const std::uint8_t* const lower = scales + kInputs / 16 * kPanel;
    const std::uint8_t* const upper = lower + kInputs * kPanel / 2;
    for (std::size_t i = 0; i < kInputs; ++i) {
      const std::uint8_t both = lower[i / 8 * 64 + lane * 4 + i % 4];
      const int nibble = i % 8 < 4 ? both & 15 : both >> 4;
      const int bits = upper[i / 16 * 64 + lane * 4 + i % 4] >> (i / 4 % 4 * 2) & 3;
      const auto scale = static_cast<std::int8_t>(scales[i / 16 * kPanel + lane]);
      y[i] = unit * static_cast<float>(scale * (nibble + 16 * bits - 32));
    }
  }

  static void EightBits(const std::uint8_t* group, std::size_t lane, float* y) {
    for (std::size_t i = 0; i < 2 * kernels::kBlock; ++i) {
      const auto weight = static_cast<std::int8_t>(group[64 + i / 4 * 64 + lane * 4 + i % 4]);
      y[i] = Half(group, i / kernels::kBlock * kPanel + lane) * static_cast<float>(weight);
    }
  }

  const BlockLayout layout_;
  const std::size_t width_;
};

class GroupedAttention {
 public:
  static constexpr const char* kName = "GroupedAttention";
  static constexpr std::array kInputs = {
      ElementType::kFloat32, ElementType::kFloat32, ElementType::kFloat32, ElementType::kFloat32,
      ElementType::kInt32,   ElementType::kInt64,   ElementType::kFloat32, ElementType::kFloat32};
  static constexpr std::size_t kRequiredInputs = kInputs.size();
  static constexpr std::array kOutputs = {ElementType::kFloat32, ElementType::kFloat32,
                                          ElementType::kFloat32};

  explicit GroupedAttention(const Attributes& attributes)
      : heads_(attributes.Number("heads")), kv_heads_(attributes.Number("kv_heads")) {
    Require(heads_ % kv_heads_ == 0, "the heads are no groups");
  }

  void Compute(Call& call) const {
    const auto query_key = call.Input<float>(0);
    const auto value = call.Input<float>(1);
    const auto past_k = call.Input<float>(2);
    const auto past_v = call.Input<float>(3);
    const auto positions = call.Input<std::int64_t>(5);
    const auto cosine = call.Input<float>(6);
    const auto sine = call.Input<float>(7);
    const std::size_t rows = query_key.rows();
    const std::size_t size = HeadSize(value.last(), kv_heads_);
    const std::size_t width = heads_ * size;
    Require(value.rows() == rows && query_key.last() == width + value.last(),
            "queries, keys and values do not fit the heads");
    const CachePair caches = Caches(call, past_k, past_v, kv_heads_, size);
    const std::vector<kernels::Place> places =
        PlacesInCache(call.Input<std::int32_t>(4), rows, past_k);
    const std::size_t half = size / 2;
    Require(cosine.shape.size() == 2 && cosine.last() == half && sine.shape == cosine.shape &&
                positions.size() == rows,
            "the table of angles does not fit the heads, or a row has no position");
    const auto known = static_cast<std::int64_t>(cosine.at(0));
    Require(std::all_of(positions.data, positions.data + rows,
                        [&](std::int64_t at) { return at >= 0 && at < known; }),
            "a row's position has no angles");
    std::vector<std::int64_t> shape = query_key.shape;
    shape.back() = static_cast<std::int64_t>(width);
    float* const y = call.Output<float>(0, shape);
    const std::size_t head_stride = past_k.at(2) * size;
    const std::size_t slot_stride = kv_heads_ * head_stride;

    thread_local std::vector<float> memory;
    memory.resize(std::max(memory.size(), rows * width));
    float* const turned = memory.data();  // workers see the caller's memory, not their own
    for (std::size_t r = 0; r < rows; ++r) {
      const float* const row = query_key.data + r * query_key.last();
      const auto angles = static_cast<std::size_t>(positions.data[r]) * half;
      const auto turn = [&](const float* x, float* to) {
        kernels::Best().rotate(x, cosine.data + angles, sine.data + angles, half, to);
      };
      for (std::size_t head = 0; head < heads_; ++head) {
        turn(row + head * size, turned + r * width + head * size);
      }
      for (std::size_t head = 0; head < kv_heads_; ++head) {
        const std::size_t to =
            places[r].slot * slot_stride + head * head_stride + places[r].at * size;
        turn(row + width + head * size, caches.k + to);
        std::copy_n(value.data + r * value.last() + head * size, size, caches.v + to);
      }
    }

    // Few rows leave too few tasks if whole groups of heads are one: their parts read keys and
    // values again, from a near cache.
    constexpr std::size_t kTaskRows = 4;
    constexpr std::size_t kTaskHeads = 3;
    const std::size_t group = heads_ / kv_heads_;
    const std::size_t heads = rows > kTaskRows ? group : std::min(group, kTaskHeads);
    const std::size_t parts = (group + heads - 1) / heads;
    const std::size_t stretches = (rows + kTaskRows - 1) / kTaskRows;
    call.Parallel(kv_heads_ * parts * stretches, [&](std::size_t task) {
      const std::size_t row = task % stretches * kTaskRows;
      const std::size_t part = task / stretches % parts * heads;
      const std::size_t shared = task / stretches / parts;
      const std::size_t at = row * width + (shared * group + part) * size;
      kernels::Best().grouped_attention(turned + at, width, std::min(heads, group - part),
                                        &places[row], std::min(kTaskRows, rows - row), width, size,
                                        caches.k + shared * head_stride,
                                        caches.v + shared * head_stride, slot_stride, y + at);
    });
  }

 private:
  const std::size_t heads_;
  const std::size_t kv_heads_;
};

}  // namespace as2d
