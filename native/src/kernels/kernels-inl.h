// All kernels, written once. Each instruction set's source file defines the class `Lanes` with the
// one primitive that differs, the 8-bit dot product, in its own anonymous namespace, includes this
// file, and is compiled with that instruction set: everything else is plain C++ that the compiler
// vectorises. No include guard: that is the point.
//
// Lanes::Sum: 16 sums of 32 bits.
// Lanes::Add(sum, unsigned bytes [16][4], signed word): each of the 16 takes the dot product of its
//   four bytes with the four signed bytes of the word.
// Lanes::AddSigned(sum, unsigned word, signed bytes [16][4]): the other way round.
// Lanes::Offset(signed bytes): the same with 128 added, as unsigned bytes.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels.h"

namespace as2d::kernels {
namespace {

constexpr std::size_t kPanel = 16;              // outputs, or positions, side by side
constexpr std::size_t kPanelStep = 4 * kPanel;  // bytes for four inputs of a panel

// Rounds to nearest even without a call, for |x| < 2^22; the compiler vectorises it. Anything else,
// not a number included, gives some number.
inline std::int32_t Round(float x) {
  constexpr float kMagic = 12582912.0F;  // 1.5 * 2^23: the sum's last bits are the integer
  return static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(x + kMagic) - 0x4b400000U);
}

// e^x for x <= 0, to about 2e-7 of its value; what is below e^-87 becomes about 1e-38.
// e^x = 2^n * e^r with |r| <= ln(2)/2, and Taylor's series of e^r up to r^7.
inline float Exp(float x) {
  x = std::max(x, -87.0F);
  const std::int32_t n = Round(x * 1.44269504F);
  const auto scale = static_cast<float>(n);
  // ln(2) in two parts, so that r keeps its bits.
  const float r = (x - scale * 0.693145752F) - scale * 1.42860677e-6F;
  float p = 1.0F / 5040.0F;
  p = p * r + 1.0F / 720.0F;
  p = p * r + 1.0F / 120.0F;
  p = p * r + 1.0F / 24.0F;
  p = p * r + 1.0F / 6.0F;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  return p * std::bit_cast<float>((n + 127) << 23);
}

// Sixteen partial results, which the compiler keeps in vector registers, and then one.
struct Partial {
  float values[16];
  float Sum() const {
    float sums[8];
    for (int i = 0; i < 8; ++i) sums[i] = values[i] + values[i + 8];
    return ((sums[0] + sums[4]) + (sums[1] + sums[5])) +
           ((sums[2] + sums[6]) + (sums[3] + sums[7]));
  }
  float Max() const { return *std::max_element(values, values + 16); }
};

inline float MaxAbs(const float* x, std::size_t n) {
  Partial most{};
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    for (std::size_t j = 0; j < 16; ++j) {
      most.values[j] = std::max(most.values[j], std::fabs(x[i + j]));
    }
  }
  float result = most.Max();
  for (; i < n; ++i) result = std::max(result, std::fabs(x[i]));
  return result;
}

inline float Max(const float* x, std::size_t n) {
  Partial most;
  std::fill_n(most.values, 16, -std::numeric_limits<float>::infinity());
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    for (std::size_t j = 0; j < 16; ++j) most.values[j] = std::max(most.values[j], x[i + j]);
  }
  float result = most.Max();
  for (; i < n; ++i) result = std::max(result, x[i]);
  return result;
}

inline float Sum(const float* x, std::size_t n) {
  Partial sum{};
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    for (std::size_t j = 0; j < 16; ++j) sum.values[j] += x[i + j];
  }
  float result = sum.Sum();
  for (; i < n; ++i) result += x[i];
  return result;
}

inline float Dot(const float* a, const float* b, std::size_t n) {
  Partial sum{};
  for (std::size_t i = 0; i < n; i += 16) {
    for (std::size_t j = 0; j < 16; ++j) sum.values[j] += a[i + j] * b[i + j];
  }
  return sum.Sum();
}

inline std::int32_t Word(const void* bytes) {
  std::int32_t word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

// Memory that a thread keeps from call to call, so that steps do not allocate.
template <typename T>
T* Keep(std::vector<T>& memory, std::size_t size) {
  if (memory.size() < size) memory.resize(size);
  return memory.data();
}

QuantizedRow Quantize(const float* x, std::size_t n, std::int8_t* q) {
  QuantizedRow row;
  const float most = MaxAbs(x, n);
  // A row of zeros, or one too small to divide by: all of it is zero.
  const float inverse = most > 1e-30F ? 127.0F / most : 0.0F;
  row.scale = most / 127.0F;
  std::int32_t sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    // The sum is of what is stored, which is bounded whatever x is.
    const auto value = static_cast<std::int8_t>(Round(x[i] * inverse));
    q[i] = value;
    sum += value;
  }
  row.sum = sum;
  return row;
}

// Sums of one panel for kRows rows, each at `stride` bytes from the one before. With few rows the
// inputs are shared out over kUnroll sums, since one sum alone would wait for itself.
template <std::size_t kRows, std::size_t kUnroll>
inline void PanelSums(const std::int8_t* weight, std::size_t k, const std::int8_t* q,
                      std::size_t stride, std::int32_t (*sums)[kPanel]) {
  Lanes::Sum sum[kRows][kUnroll];
  for (auto& row : sum) {
    for (auto& part : row) part = Lanes::Zero();
  }
  const std::size_t steps = k / 4;
  std::size_t step = 0;
  for (; step + kUnroll <= steps; step += kUnroll) {
    for (std::size_t u = 0; u < kUnroll; ++u) {
      const auto panel = Lanes::Offset(weight + (step + u) * kPanelStep);
      for (std::size_t r = 0; r < kRows; ++r) {
        sum[r][u] = Lanes::Add(sum[r][u], panel, Word(q + r * stride + (step + u) * 4));
      }
    }
  }
  for (; step < steps; ++step) {
    const auto panel = Lanes::Offset(weight + step * kPanelStep);
    for (std::size_t r = 0; r < kRows; ++r) {
      sum[r][0] = Lanes::Add(sum[r][0], panel, Word(q + r * stride + step * 4));
    }
  }
  for (std::size_t r = 0; r < kRows; ++r) {
    for (std::size_t u = 1; u < kUnroll; ++u) sum[r][0] = Lanes::Both(sum[r][0], sum[r][u]);
    Lanes::Store(sum[r][0], sums[r]);
  }
}

// From integers to outputs, the same code for every row.
[[gnu::noinline]] void Finish(const std::int32_t* sums, const QuantizedRow& row, const float* scale,
                              const float* bias, std::size_t count, float* y) {
  const std::int32_t offset = 128 * row.sum;
  float values[kPanel];
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>(sums[i] - offset) * (row.scale * scale[i]);
  }
  if (bias != nullptr) {
    for (std::size_t i = 0; i < count; ++i) values[i] += bias[i];
  }
  std::memcpy(y, values, count * sizeof *y);
}

void Linear(const std::int8_t* weight, std::size_t panels, std::size_t first, std::size_t outputs,
            std::size_t k, const std::int8_t* q, const QuantizedRow* quantized, std::size_t rows,
            const float* scale, const float* bias, float* y) {
  std::int32_t sums[8][kPanel];
  for (std::size_t panel = 0; panel < panels; ++panel) {
    const std::int8_t* const bytes = weight + panel * kPanel * k;
    const std::size_t output = first + panel * kPanel;
    const std::size_t count = std::min(kPanel, outputs - output);
    for (std::size_t row = 0; row < rows;) {
      const std::int8_t* const at = q + row * k;
      std::size_t done = 0;
      if (rows - row >= 8) {
        PanelSums<8, 1>(bytes, k, at, k, sums);
        done = 8;
      } else if (rows - row >= 4) {
        PanelSums<4, 2>(bytes, k, at, k, sums);
        done = 4;
      } else if (rows - row >= 2) {
        PanelSums<2, 4>(bytes, k, at, k, sums);
        done = 2;
      } else {
        PanelSums<1, 8>(bytes, k, at, k, sums);
        done = 1;
      }
      for (std::size_t r = 0; r < done; ++r) {
        Finish(sums[r], quantized[row + r], scale + output,
               bias == nullptr ? nullptr : bias + output, count, y + (row + r) * outputs + output);
      }
      row += done;
    }
  }
}

// A stretch of positions of one row. The code for both stretches of a row is one, so that a
// position's share of the work does not depend on which of them it is in.
[[gnu::noinline]] void ScorePositions(const float* query, std::size_t size, float scale,
                                      const float* key, std::size_t count, float* scores) {
  for (std::size_t t = 0; t < count; ++t) scores[t] = Dot(query, key + t * size, size) * scale;
}

[[gnu::noinline]] void MixPositions(const float* weights, float inverse, const float* value,
                                    std::size_t count, std::size_t size, float* y) {
  for (std::size_t t = 0; t < count; ++t) {
    const float weight = weights[t] * inverse;
    for (std::size_t i = 0; i < size; ++i) y[i] += weight * value[t * size + i];
  }
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
void ChannelScales(const float* x, std::size_t positions, std::size_t width, std::size_t size,
                   float* scale, float* inverse) {
  std::fill_n(scale, size, 0.0F);
  for (std::size_t t = 0; t < positions; ++t) {
    for (std::size_t i = 0; i < size; ++i) {
      scale[i] = std::max(scale[i], std::fabs(x[t * width + i]));
    }
  }
  for (std::size_t i = 0; i < size; ++i) {
    inverse[i] = scale[i] > 1e-30F ? 127.0F / scale[i] : 0.0F;
    scale[i] /= 127.0F;
  }
}

void QuantizeCross(const float* key, const float* value, std::size_t positions, std::size_t width,
                   std::size_t size, std::uint8_t* key_out, float* key_scale,
                   std::int8_t* value_out, float* value_scale) {
  thread_local std::vector<float> memory;
  float* const inverse = Keep(memory, size);
  const std::size_t panels = (positions + kPanel - 1) / kPanel;
  const std::size_t steps = size / 4;
  ChannelScales(key, positions, width, size, key_scale, inverse);
  // Positions beyond the last one are never given weight; they hold zeros all the same.
  std::memset(key_out + (panels - 1) * kPanel * size, 128, kPanel * size);
  for (std::size_t t = 0; t < positions; ++t) {
    std::uint8_t* const at = key_out + t / kPanel * kPanel * size + t % kPanel * 4;
    for (std::size_t step = 0; step < steps; ++step) {
      for (std::size_t j = 0; j < 4; ++j) {
        const std::size_t i = step * 4 + j;
        at[step * kPanelStep + j] =
            static_cast<std::uint8_t>(Round(key[t * width + i] * inverse[i]) + 128);
      }
    }
  }
  ChannelScales(value, positions, width, size, value_scale, inverse);
  const std::size_t padded = panels * kPanel;
  for (std::size_t block = 0; block < size / kPanel; ++block) {
    std::int8_t* const at = value_out + block * padded * kPanel;
    std::memset(at + positions / 4 * kPanelStep, 0, (padded / 4 - positions / 4) * kPanelStep);
    for (std::size_t t = 0; t < positions; ++t) {
      for (std::size_t i = 0; i < kPanel; ++i) {
        const std::size_t channel = block * kPanel + i;
        at[t / 4 * kPanelStep + i * 4 + t % 4] =
            static_cast<std::int8_t>(Round(value[t * width + channel] * inverse[channel]));
      }
    }
  }
}

// A query of 16 bits in two signed bytes: value = scale * (128 * high + low).
struct SplitQuery {
  float scale;
  std::int32_t offset;  // 128 * (128 * sum of high + sum of low)
};

[[gnu::noinline]] SplitQuery Split(const float* query, const float* key_scale, std::size_t size,
                                   std::int8_t* high, std::int8_t* low, float* scaled) {
  const float scale = 1.0F / std::sqrt(static_cast<float>(size));
  for (std::size_t i = 0; i < size; ++i) scaled[i] = query[i] * (key_scale[i] * scale);
  constexpr float kMost = 127.0F * 128.0F;
  const float most = MaxAbs(scaled, size);
  const float inverse = most > 1e-30F ? kMost / most : 0.0F;
  std::int32_t sum = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const std::int32_t whole = Round(scaled[i] * inverse);
    const std::int32_t upper = (whole + 64) >> 7;
    high[i] = static_cast<std::int8_t>(upper);
    low[i] = static_cast<std::int8_t>(whole - upper * 128);
    sum += 128 * high[i] + low[i];  // as in Quantize
  }
  return {most / kMost, 128 * sum};
}

// Scores of all positions for kRows rows.
template <std::size_t kRows>
inline void Scores(const CrossHead& head, std::size_t panels, std::size_t size,
                   const std::int8_t* high, const std::int8_t* low, const SplitQuery* split,
                   std::size_t padded, float* scores) {
  for (std::size_t panel = 0; panel < panels; ++panel) {
    Lanes::Sum upper[kRows];
    Lanes::Sum lower[kRows];
    for (std::size_t r = 0; r < kRows; ++r) upper[r] = lower[r] = Lanes::Zero();
    const std::uint8_t* const key = head.key + panel * kPanel * size;
    for (std::size_t i = 0; i < size; i += 4) {
      const auto bytes = Lanes::Load(key + i * kPanel);
      for (std::size_t r = 0; r < kRows; ++r) {
        upper[r] = Lanes::Add(upper[r], bytes, Word(high + r * size + i));
        lower[r] = Lanes::Add(lower[r], bytes, Word(low + r * size + i));
      }
    }
    for (std::size_t r = 0; r < kRows; ++r) {
      std::int32_t u[kPanel];
      std::int32_t l[kPanel];
      Lanes::Store(upper[r], u);
      Lanes::Store(lower[r], l);
      float* const out = scores + r * padded + panel * kPanel;
      for (std::size_t i = 0; i < kPanel; ++i) {
        out[i] = static_cast<float>(128 * u[i] + l[i] - split[r].offset) * split[r].scale;
      }
    }
  }
}

// Scores to weights of 16 bits in two unsigned bytes each; returns their sum. In two passes over
// pieces that stay in the nearest cache, for bytes written could be the floats read as far as the
// compiler knows, and then it vectorises nothing.
[[gnu::noinline]] float Weigh(const float* scores, std::size_t positions, std::size_t padded,
                              std::uint8_t* __restrict high, std::uint8_t* __restrict low) {
  constexpr std::size_t kPiece = 256;
  const float most = Max(scores, positions);
  std::int64_t sum = 0;
  for (std::size_t begin = 0; begin < positions; begin += kPiece) {
    const std::size_t count = std::min(kPiece, positions - begin);
    std::int32_t weights[kPiece];
    std::int32_t part = 0;
    for (std::size_t i = 0; i < count; ++i) {
      // In range already, but for a score that is not a number.
      weights[i] = Round(Exp(scores[begin + i] - most) * 65535.0F) & 0xffff;
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

// Weighted values for kRows rows.
template <std::size_t kRows>
inline void Mix(const CrossHead& head, std::size_t size, std::size_t padded,
                const std::uint8_t* high, const std::uint8_t* low, const float* sum,
                std::size_t width, float* y) {
  for (std::size_t block = 0; block < size; block += kPanel) {
    Lanes::Sum upper[kRows];
    Lanes::Sum lower[kRows];
    for (std::size_t r = 0; r < kRows; ++r) upper[r] = lower[r] = Lanes::Zero();
    const std::int8_t* const value = head.value + block * padded;
    for (std::size_t t = 0; t < padded; t += 4) {
      const auto bytes = Lanes::LoadSigned(value + t * kPanel);
      for (std::size_t r = 0; r < kRows; ++r) {
        upper[r] = Lanes::AddSigned(upper[r], Word(high + r * padded + t), bytes);
        lower[r] = Lanes::AddSigned(lower[r], Word(low + r * padded + t), bytes);
      }
    }
    for (std::size_t r = 0; r < kRows; ++r) {
      std::int32_t u[kPanel];
      std::int32_t l[kPanel];
      Lanes::Store(upper[r], u);
      Lanes::Store(lower[r], l);
      float* const out = y + r * width + block;
      for (std::size_t i = 0; i < kPanel; ++i) {
        const float mixed = 256.0F * static_cast<float>(u[i]) + static_cast<float>(l[i]);
        out[i] = mixed / sum[r] * head.value_scale[block + i];
      }
    }
  }
}

void CrossAttention(const float* query, std::size_t rows, std::size_t width, std::size_t size,
                    std::size_t positions, const CrossHead& head, float* y) {
  constexpr std::size_t kRows = 4;  // times two sums each: as many as keep the multiplier busy
  const std::size_t panels = (positions + kPanel - 1) / kPanel;
  const std::size_t padded = panels * kPanel;
  thread_local std::vector<float> float_memory;
  thread_local std::vector<std::int8_t> query_memory;
  thread_local std::vector<std::uint8_t> weight_memory;
  float* const scores = Keep(float_memory, kRows * padded + size);
  float* const scaled = scores + kRows * padded;
  std::int8_t* const query_high = Keep(query_memory, 2 * kRows * size);
  std::int8_t* const query_low = query_high + kRows * size;
  std::uint8_t* const high = Keep(weight_memory, 2 * kRows * padded);
  std::uint8_t* const low = high + kRows * padded;
  for (std::size_t row = 0; row < rows; row += kRows) {
    const std::size_t count = std::min(kRows, rows - row);
    SplitQuery split[kRows];
    float sum[kRows];
    for (std::size_t r = 0; r < count; ++r) {
      split[r] = Split(query + (row + r) * width, head.key_scale, size, query_high + r * size,
                       query_low + r * size, scaled);
    }
    float* const out = y + row * width;
    const auto run = [&]<std::size_t kCount>() {
      Scores<kCount>(head, panels, size, query_high, query_low, split, padded, scores);
      for (std::size_t r = 0; r < kCount; ++r) {
        sum[r] = Weigh(scores + r * padded, positions, padded, high + r * padded, low + r * padded);
      }
      Mix<kCount>(head, size, padded, high, low, sum, width, out);
    };
    if (count == 4) {
      run.template operator()<4>();
    } else if (count == 3) {
      run.template operator()<3>();
    } else if (count == 2) {
      run.template operator()<2>();
    } else {
      run.template operator()<1>();
    }
  }
}

void Choose(const float* logits, const float* suppress, std::size_t n, std::int64_t* next,
            float* log_prob) {
  thread_local std::vector<float> memory;
  float* const values = Keep(memory, n);
  for (std::size_t i = 0; i < n; ++i) values[i] = logits[i] + suppress[i];
  const float most = Max(values, n);
  std::size_t best = 0;
  while (best < n && !(values[best] >= most)) ++best;
  Partial sum{};
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    for (std::size_t j = 0; j < 16; ++j) sum.values[j] += Exp(values[i + j] - most);
  }
  float total = sum.Sum();
  for (; i < n; ++i) total += Exp(values[i] - most);
  *next = static_cast<std::int64_t>(best < n ? best : 0);
  *log_prob = -std::log(total);
}

constexpr Kernels kKernels = {Lanes::kName,  Quantize,       Linear, SelfAttention,
                              QuantizeCross, CrossAttention, Choose};

}  // namespace
}  // namespace as2d::kernels
