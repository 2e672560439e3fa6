// Self-attention over caches, and attention over 8-bit keys and values. Part of kernels-inl.h.

namespace as2d::kernels {
namespace {

// Work on a stretch of positions of one row. The code for both stretches of a row is one, so that a
// position's share of the work does not depend on which of them it is in.

[[gnu::noinline]] void ScorePositions(const float* query, std::size_t size, float scale,
                                      const float* key, std::size_t count, float* scores) {
  for (std::size_t t = 0; t < count; ++t, key += size) {
    Sixteen sum;
    for (std::size_t i = 0; i < size; i += 16)
      sum.Add(Sixteen::At(query + i), Sixteen::At(key + i));
    scores[t] = sum.Total() * scale;
  }
}

// kBlocks blocks of 16 channels: y += weights * inverse * values.
template <std::size_t kBlocks>
inline void MixBlocks(const float* weights, float inverse, const float* value, std::size_t count,
                      std::size_t size, float* y) {
  Sixteen sum[kBlocks];
  Each<kBlocks>([&](auto i) __attribute__((always_inline)) { sum[i] = Sixteen::At(y + 16 * i); });
  for (std::size_t t = 0; t < count; ++t) {
    const float weight = weights[t] * inverse;
    Each<kBlocks>([&](auto i) __attribute__((always_inline)) {
      sum[i].Add(weight, Sixteen::At(value + t * size + 16 * i));
    });
  }
  Each<kBlocks>([&](auto i) __attribute__((always_inline)) { sum[i].Store(y + 16 * i); });
}

[[gnu::noinline]] void MixPositions(const float* weights, float inverse, const float* value,
                                    std::size_t count, std::size_t size, float* y) {
  std::size_t i = 0;
  for (; i + 64 <= size; i += 64) MixBlocks<4>(weights, inverse, value + i, count, size, y + i);
  for (; i < size; i += 16) MixBlocks<1>(weights, inverse, value + i, count, size, y + i);
}

void SelfAttention(const float* query, std::size_t query_stride, const Place* places,
                   std::size_t rows, std::size_t width, std::size_t size, const float* cache_k,
                   const float* cache_v, std::size_t slot_stride, float* y) {
  thread_local std::vector<float> memory;
  const float scale = 1.0F / std::sqrt(static_cast<float>(size));
  for (std::size_t r = 0; r < rows; ++r, query += query_stride, y += width) {
    const Place& place = places[r];
    const std::size_t own = place.at + 1 - place.begin;
    const std::size_t length = place.shared + own;
    float* const scores = Keep(memory, length);
    const float* const key = cache_k + place.slot * slot_stride;
    const float* const value = cache_v + place.slot * slot_stride;
    const std::size_t begin = place.begin * size;
    ScorePositions(query, size, scale, key, place.shared, scores);
    ScorePositions(query, size, scale, key + begin, own, scores + place.shared);
    const float most = Max(scores, length);
    for (std::size_t t = 0; t < length; ++t) scores[t] = Exp(scores[t] - most);
    const float inverse = 1.0F / Sum(scores, length);
    std::fill_n(y, size, 0.0F);
    MixPositions(scores, inverse, value, place.shared, size, y);
    MixPositions(scores + place.shared, inverse, value + begin, own, size, y);
  }
}

// The largest magnitude of each of `size` channels over all positions, divided by 127; and its
// inverse, 0 for a channel of zeros.
void ChannelScales(const float* x, std::size_t positions, std::size_t stride, std::size_t size,
                   float* scale, float* inverse) {
  std::fill_n(scale, size, 0.0F);
  for (std::size_t t = 0; t < positions; ++t) {
    for (std::size_t i = 0; i < size; ++i) {
      scale[i] = std::max(scale[i], std::fabs(x[t * stride + i]));
    }
  }
  for (std::size_t i = 0; i < size; ++i) {
    inverse[i] = scale[i] > 1e-30F ? 127.0F / scale[i] : 0.0F;
    scale[i] /= 127.0F;
  }
}

void QuantizeCross(const float* key, const float* value, std::size_t positions, std::size_t stride,
                   std::size_t size, std::uint8_t* key_out, float* key_scale,
                   std::int8_t* value_out, float* value_scale) {
  thread_local std::vector<float> memory;
  float* const inverse = Keep(memory, size);
  const std::size_t panels = (positions + kPanel - 1) / kPanel;
  const std::size_t steps = size / 4;
  ChannelScales(key, positions, stride, size, key_scale, inverse);
  // Positions beyond the last one are never given weight; they hold zeros all the same.
  std::memset(key_out + (panels - 1) * kPanel * size, 128, kPanel * size);
  for (std::size_t t = 0; t < positions; ++t) {
    std::uint8_t* const at = key_out + t / kPanel * kPanel * size + t % kPanel * 4;
    for (std::size_t step = 0; step < steps; ++step) {
      for (std::size_t j = 0; j < 4; ++j) {
        const std::size_t i = step * 4 + j;
        at[step * kPanelStep + j] =
            static_cast<std::uint8_t>(Round(key[t * stride + i] * inverse[i]) + 128);
      }
    }
  }
  ChannelScales(value, positions, stride, size, value_scale, inverse);
  const std::size_t padded = panels * kPanel;
  for (std::size_t block = 0; block < size / kPanel; ++block) {
    std::int8_t* const at = value_out + block * padded * kPanel;
    std::memset(at + positions / 4 * kPanelStep, 0, (padded / 4 - positions / 4) * kPanelStep);
    for (std::size_t t = 0; t < positions; ++t) {
      for (std::size_t i = 0; i < kPanel; ++i) {
        const std::size_t channel = block * kPanel + i;
        at[t / 4 * kPanelStep + i * 4 + t % 4] =
            static_cast<std::int8_t>(Round(value[t * stride + channel] * inverse[channel]));
      }
    }
  }
}

// A query as integers of 8 bits, or of 16 bits in two signed bytes, 128 * high + low, where `low`
// follows `high`. Returns what one of them stands for, such that sums with keys become logarithms
// to base 2.
template <std::size_t kParts>
[[gnu::noinline]] float Integers(const float* __restrict query, const float* __restrict key_scale,
                                 std::size_t size, std::int8_t* __restrict high,
                                 float* __restrict scaled) {
  const float scale = 1.44269504F / std::sqrt(static_cast<float>(size));
  for (std::size_t i = 0; i < size; ++i) scaled[i] = query[i] * (key_scale[i] * scale);
  constexpr float kMost = kParts == 1 ? 127.0F : 127.0F * 128.0F;
  const float most = MaxAbs(scaled, size);
  const float inverse = most > 1e-30F ? kMost / most : 0.0F;
  for (std::size_t i = 0; i < size; ++i) {
    const std::int32_t whole = Round(scaled[i] * inverse);
    if constexpr (kParts == 1) {
      high[i] = static_cast<std::int8_t>(whole);
    } else {
      const std::int32_t upper = (whole + 64) >> 7;
      high[i] = static_cast<std::int8_t>(upper);
      high[size + i] = static_cast<std::int8_t>(whole - upper * 128);
    }
  }
  return most / kMost;
}

[[gnu::noinline]] void Combine(const std::int32_t* __restrict high,
                               const std::int32_t* __restrict low, std::size_t count,
                               std::int32_t* __restrict scores) {
  for (std::size_t i = 0; i < count; ++i) scores[i] = 128 * high[i] + low[i];
}

inline std::int32_t Largest(const std::int32_t* x, std::size_t n) {
  std::int32_t most[16];
  std::fill_n(most, 16, std::numeric_limits<std::int32_t>::min());
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    for (std::size_t j = 0; j < 16; ++j) most[j] = std::max(most[j], x[i + j]);
  }
  std::int32_t result = *std::max_element(most, most + 16);
  for (; i < n; ++i) result = std::max(result, x[i]);
  return result;
}

// Scores, times `scale`, to weights of 16 bits in two unsigned bytes each; returns their sum. What
// all scores have too much, as they do from keys with 128 added, is of no matter. In two passes
// over pieces that stay in the nearest cache, for bytes written could be the numbers read as far as
// the compiler knows, and then it vectorises nothing.
[[gnu::noinline]] float Weigh(const std::int32_t* scores, float scale, std::size_t positions,
                              std::size_t padded, std::uint8_t* __restrict high,
                              std::uint8_t* __restrict low) {
  constexpr std::size_t kPiece = 256;
  const std::int32_t most = Largest(scores, positions);
  std::int64_t sum = 0;
  for (std::size_t begin = 0; begin < positions; begin += kPiece) {
    const std::size_t count = std::min(kPiece, positions - begin);
    std::int32_t weights[kPiece];
    std::int32_t part = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const float score = static_cast<float>(scores[begin + i] - most) * scale;
      // In range already, but for a score that is not a number.
      weights[i] = Round(Exp2(score) * 65535.0F) & 0xffff;
      part += weights[i];
    }
    for (std::size_t i = 0; i < count; ++i) {
      high[begin + i] = static_cast<std::uint8_t>(weights[i] >> 8);
      low[begin + i] = static_cast<std::uint8_t>(weights[i] & 255);
    }
    sum += part;
  }
  std::memset(high + positions, 0, padded - positions);
  std::memset(low + positions, 0, padded - positions);
  return static_cast<float>(sum);
}

// One row's output from the sums of its weights' two bytes.
[[gnu::noinline]] void FinishMix(const std::int32_t* __restrict high,
                                 const std::int32_t* __restrict low, float sum,
                                 const float* __restrict scale, std::size_t size,
                                 float* __restrict y) {
  const float inverse = 1.0F / sum;
  for (std::size_t i = 0; i < size; ++i) {
    const float mixed = 256.0F * static_cast<float>(high[i]) + static_cast<float>(low[i]);
    y[i] = mixed * inverse * scale[i];
  }
}

template <std::size_t kParts>
void TiledAttention(const float* query, std::size_t query_stride, std::size_t rows,
                    std::size_t width, std::size_t size, std::size_t positions,
                    const CrossHead& head, float* y) {
  constexpr std::size_t kRows = Lanes::kAttentionRows;
  const std::size_t panels = (positions + kPanel - 1) / kPanel;
  const std::size_t padded = panels * kPanel;
  // Panels whose sums stay in the nearest cache until they are combined, if they have to be.
  const std::size_t chunk = kParts == 1 ? panels : 8;
  // As far as a kernel may read weights.
  const std::size_t weights_stride = (positions + 63) / 64 * 64;
  thread_local std::vector<float> float_memory;
  thread_local std::vector<std::int8_t> query_memory;
  thread_local std::vector<std::uint8_t> weight_memory;
  thread_local std::vector<std::int32_t> sum_memory;
  float* const scaled = Keep(float_memory, size);
  std::int8_t* const parts = Keep(query_memory, kParts * kRows * size + 64);
  // Two lines a row: the high bytes and the low ones.
  std::uint8_t* const weights = Keep(weight_memory, 2 * kRows * weights_stride);
  const std::size_t sums_stride = std::max(chunk * kPanel, size);
  std::int32_t* const sums = Keep(sum_memory, kRows * (2 * sums_stride + padded));
  std::int32_t* const combined = sums + 2 * kRows * sums_stride;
  const Workspace workspace;
  for (std::size_t row = 0; row < rows; row += kRows) {
    const std::size_t count = std::min(kRows, rows - row);
    float scale[kRows];
    float sum[kRows];
    for (std::size_t r = 0; r < count; ++r) {
      scale[r] = Integers<kParts>(query + (row + r) * query_stride, head.key_scale, size,
                                  parts + kParts * r * size, scaled);
    }
    for (std::size_t panel = 0; panel < panels; panel += chunk) {
      const std::size_t together = std::min(chunk, panels - panel);
      Products<SignedByUnsigned>(workspace, {.a = parts,
                                             .a_stride = size,
                                             .rows = kParts * count,
                                             .b = head.key + panel * kPanel * size,
                                             .panels = together,
                                             .k = size,
                                             .sums = sums,
                                             .sums_stride = sums_stride});
      for (std::size_t r = 0; kParts == 2 && r < count; ++r) {
        const std::int32_t* const high = sums + 2 * r * sums_stride;
        Combine(high, high + sums_stride, together * kPanel,
                combined + r * padded + panel * kPanel);
      }
    }
    for (std::size_t r = 0; r < count; ++r) {
      std::uint8_t* const high = weights + 2 * r * weights_stride;
      const std::int32_t* const scores =
          kParts == 1 ? sums + r * sums_stride : combined + r * padded;
      sum[r] = Weigh(scores, scale[r], positions, weights_stride, high, high + weights_stride);
    }
    Products<UnsignedBySigned>(workspace, {.a = weights,
                                           .a_stride = weights_stride,
                                           .rows = 2 * count,
                                           .b = head.value,
                                           .panels = size / kPanel,
                                           .k = padded,
                                           .sums = sums,
                                           .sums_stride = sums_stride});
    for (std::size_t r = 0; r < count; ++r) {
      const std::int32_t* const high = sums + 2 * r * sums_stride;
      FinishMix(high, high + sums_stride, sum[r], head.value_scale, size, y + (row + r) * width);
    }
  }
}

}  // namespace
}  // namespace as2d::kernels
