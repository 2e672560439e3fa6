// Attention as operators.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "as2d/runtime/tensor.h"
#include "call.h"
#include "kernels.h"

namespace as2d {

// Beyond these the kernels' sums of 32 bits could overflow.
inline constexpr std::size_t kMostPositions = 1 << 16;
inline constexpr std::size_t kMostHeadSize = 256;

/// Rows in the slots of caches: `places` i32 [R,4], lines of slot, at, shared, begin.
inline std::vector<kernels::Place> Places(const Call::Values<const std::int32_t>& places,
                                          std::size_t rows, std::size_t slots) {
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

/// The size of a head where a row of `width` numbers is `heads` of them side by side.
inline std::size_t HeadSize(std::size_t width, std::size_t heads) {
  const std::size_t size = width / heads;
  Require(size * heads == width && size % kPanel == 0, "the heads do not fit the width");
  return size;
}

/// The width of one where a row of `row` numbers is `parts` of equal width side by side.
inline std::size_t PartWidth(std::size_t row, std::size_t parts) {
  Require(row % parts == 0, "the heads do not fit the width");
  return row / parts;
}

/// The same, where they fit caches [slots, heads, context, head size].
inline std::vector<kernels::Place> PlacesInCache(const Call::Values<const std::int32_t>& places,
                                                 std::size_t rows,
                                                 const Call::Values<const float>& cache) {
  std::vector<kernels::Place> result = Places(places, rows, cache.at(0));
  for (const kernels::Place& place : result) {
    Require(place.shared <= place.begin && place.begin <= place.at && place.at < cache.at(2),
            "a row's positions are out of order or beyond the context");
  }
  return result;
}

/// Keys and values to write to.
struct CachePair {
  float* k;
  float* v;
};

/// Outputs 1 and 2, which hold what is in the caches.
inline CachePair Caches(Call& call, const Call::Values<const float>& past_k,
                        const Call::Values<const float>& past_v, std::size_t heads,
                        std::size_t size) {
  Require(past_k.shape.size() == 4 && past_k.shape == past_v.shape && past_k.at(1) == heads &&
              past_k.at(3) == size,
          "the caches do not fit the heads");
  const auto present = [&](std::size_t index, const Call::Values<const float>& past) {
    float* const memory = call.Output<float>(index, past.shape);
    const std::size_t bytes = past.rows() * past.last() * sizeof(float);
    if (memory != past.data && bytes > 0) std::memcpy(memory, past.data, bytes);
    return memory;
  };
  return {present(1, past_k), present(2, past_v)};
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
    const std::size_t width = PartWidth(x.last(), 3);
    const std::size_t size = HeadSize(width, heads_);
    const CachePair caches = Caches(call, past_k, past_v, heads_, size);
    const std::vector<kernels::Place> places =
        PlacesInCache(call.Input<std::int32_t>(3), rows, past_k);
    std::vector<std::int64_t> shape = x.shape;
    shape.back() = static_cast<std::int64_t>(width);
    float* const y = call.Output<float>(0, shape);
    const std::size_t head_stride = past_k.at(2) * size;
    const std::size_t slot_stride = heads_ * head_stride;
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t head = 0; head < heads_; ++head) {
        const float* const key = x.data + r * 3 * width + width + head * size;
        const std::size_t to =
            places[r].slot * slot_stride + head * head_stride + places[r].at * size;
        std::copy_n(key, size, caches.k + to);
        std::copy_n(key + width, size, caches.v + to);
      }
    }
    constexpr std::size_t kTaskRows = 4;
    const std::size_t groups = (rows + kTaskRows - 1) / kTaskRows;
    call.Parallel(heads_ * groups, [&](std::size_t task) {
      const std::size_t head = task / groups;
      const std::size_t row = task % groups * kTaskRows;
      kernels::Best().self_attention(x.data + row * 3 * width + head * size, 3 * width,
                                     &places[row], std::min(kTaskRows, rows - row), width, size,
                                     caches.k + head * head_stride, caches.v + head * head_stride,
                                     slot_stride, y + row * width + head * size);
    });
  }

 private:
  const std::size_t heads_;
};

class QuantizeCross {
 public:
  static constexpr const char* kName = "QuantizeCross";
  static constexpr std::array kInputs = {ElementType::kFloat32};
  static constexpr std::size_t kRequiredInputs = 1;
  static constexpr std::array kOutputs = {ElementType::kUint8, ElementType::kFloat32,
                                          ElementType::kInt8, ElementType::kFloat32};

  explicit QuantizeCross(const Attributes& attributes) : heads_(attributes.Number("heads")) {}

  void Compute(Call& call) const {
    const auto x = call.Input<float>(0);
    const std::size_t positions = x.rows();
    const std::size_t width = PartWidth(x.last(), 2);
    const std::size_t size = HeadSize(width, heads_);
    Require(positions > 0, "the heads do not fit the width");
    const std::size_t padded = Panels(positions) * kPanel;
    const auto number = [](std::size_t n) { return static_cast<std::int64_t>(n); };
    auto* const key_out = call.Output<std::uint8_t>(
        0, {number(heads_), number(padded / kPanel), number(size / 4), 16, 4});
    auto* const key_scale = call.Output<float>(1, {number(heads_), number(size)});
    auto* const value_out = call.Output<std::int8_t>(
        2, {number(heads_), number(size / kPanel), number(padded / 4), 16, 4});
    auto* const value_scale = call.Output<float>(3, {number(heads_), number(size)});
    call.Parallel(heads_, [&](std::size_t head) {
      const float* const key = x.data + head * size;
      kernels::Best().quantize_cross(key, key + width, positions, 2 * width, size,
                                     key_out + head * padded * size, key_scale + head * size,
                                     value_out + head * padded * size, value_scale + head * size);
    });
  }

 private:
  const std::size_t heads_;
};

/// Attention of all rows to all, over keys and values of 8 bits.
class Attention {
 public:
  static constexpr const char* kName = "Attention";
  static constexpr std::array kInputs = {ElementType::kFloat32};
  static constexpr std::size_t kRequiredInputs = 1;
  static constexpr std::array kOutputs = {ElementType::kFloat32};

  explicit Attention(const Attributes& attributes) : heads_(attributes.Number("heads")) {}

  void Compute(Call& call) const {
    const auto x = call.Input<float>(0);
    const std::size_t positions = x.rows();
    const std::size_t width = PartWidth(x.last(), 3);
    const std::size_t size = HeadSize(width, heads_);
    Require(size <= kMostHeadSize, "the heads do not fit the width");
    Require(positions > 0 && positions <= kMostPositions, "too many positions, or none");
    std::vector<std::int64_t> shape = x.shape;
    shape.back() = static_cast<std::int64_t>(width);
    float* const y = call.Output<float>(0, shape);
    const std::size_t padded = Panels(positions) * kPanel;
    thread_local std::vector<std::uint8_t> key_memory;
    thread_local std::vector<std::int8_t> value_memory;
    thread_local std::vector<float> scale_memory;
    key_memory.resize(std::max(key_memory.size(), padded * width));
    value_memory.resize(std::max(value_memory.size(), padded * width));
    scale_memory.resize(std::max(scale_memory.size(), 2 * width));
    // Workers see the caller's memory, not their own of the same name.
    std::uint8_t* const keys = key_memory.data();
    std::int8_t* const values = value_memory.data();
    float* const scales = scale_memory.data();
    call.Parallel(heads_, [&](std::size_t head) {
      const float* const key = x.data + width + head * size;
      kernels::Best().quantize_cross(key, key + width, positions, 3 * width, size,
                                     keys + head * padded * size, scales + head * size,
                                     values + head * padded * size, scales + width + head * size);
    });
    // Tasks of a head are neighbours: they find keys and values in the cache.
    constexpr std::size_t kTaskRows = 96;
    const std::size_t pieces = (positions + kTaskRows - 1) / kTaskRows;
    call.Parallel(heads_ * pieces, [&](std::size_t task) {
      const std::size_t head = task / pieces;
      const std::size_t row = task % pieces * kTaskRows;
      kernels::Best().attention(x.data + row * 3 * width + head * size, 3 * width,
                                std::min(kTaskRows, positions - row), width, size, positions,
                                {keys + head * padded * size, scales + head * size,
                                 values + head * padded * size, scales + width + head * size},
                                y + row * width + head * size);
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
    const std::size_t size = HeadSize(width, heads_);
    Require(size <= kMostHeadSize, "the heads do not fit the width");
    Require(key.shape.size() == 6 && key.at(2) > 0, "the keys are not in tiles");
    const std::size_t slots = key.at(0);
    const std::size_t padded = key.at(2) * kPanel;
    const std::size_t positions = std::min(positions_, padded);
    Require(padded < positions + kPanel && positions <= kMostPositions, "too many positions");
    const std::size_t elements = width * padded;
    Require(key.size() == slots * elements && value.size() == slots * elements &&
                key_scale.size() == slots * width && value_scale.size() == slots * width,
            "keys and values do not fit the query");
    const std::vector<kernels::Place> places = Places(call.Input<std::int32_t>(5), rows, slots);
    const std::vector<Group> groups = GroupsOf(places);
    float* const y = call.Output<float>(0, query.shape);
    // Groups of a head are neighbours: the second finds keys and values in the cache.
    call.Parallel(heads_ * groups.size(), [&](std::size_t task) {
      const std::size_t head = task / groups.size();
      const Group& group = groups[task % groups.size()];
      const std::size_t at = group.slot * heads_ + head;
      const std::size_t to = group.row * width + head * size;
      kernels::Best().cross_attention(
          query.data + to, width, group.rows, width, size, positions,
          {key.data + at * padded * size, key_scale.data + at * size,
           value.data + at * padded * size, value_scale.data + at * size},
          y + to);
    });
  }

 private:
  /// Neighbouring rows of one slot.
  struct Group {
    std::size_t slot;
    std::size_t row;
    std::size_t rows;
  };

  static std::vector<Group> GroupsOf(const std::vector<kernels::Place>& places) {
    constexpr std::size_t kMost = 16;  // as many as any kernel takes at once
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

}  // namespace as2d
