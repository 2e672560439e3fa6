// The arithmetic of the operators, one set of functions for each instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "as2d/platform/cpu_info.h"
#include "as2d/platform/cpu_mask.h"

namespace as2d::kernels {

/// A row of activations as signed 8-bit integers.
struct QuantizedRow {
  float scale = 0;       ///< x = scale * q
  std::int32_t sum = 0;  ///< of all q: undoes the 128 that unsigned operands carry
};

/// A layer norm: gamma * (x - mean) / sqrt(variance + epsilon) + beta.
struct Norm {
  const float* gamma;
  const float* beta;
};

/// Weights of Linear, [panels, k / 4, 16, 4], and what is done with their sums.
struct Layer {
  const std::int8_t* weight;
  const float* scale;
  const float* bias;  ///< may be null
  std::size_t outputs;
  std::size_t k;
  bool gelu;
};

/// Inputs that share a scale, of weights in blocks and of the rows that these multiply.
inline constexpr std::size_t kBlock = 32;

/// Rows in blocks, of k inputs each, as quantize_blocks leaves them for block_linear.
struct BlockedRows {
  std::size_t count;
  std::int8_t* q;        ///< count * k
  float* scale;          ///< one for a block, as are the others: x = scale * q
  float* total;          ///< scale times the sum of the block's q
  std::int32_t* offset;  ///< undoes what unsigned operands carry
  std::int32_t* halves;  ///< two for a block: -32 times the sum of that half's q
};

/// gamma * x / sqrt(mean of x^2 + epsilon); none, if gamma is null.
struct RmsNorm {
  const float* gamma;
  float epsilon;
};

/// Weights of BlockLinear, and what is done with their sums.
struct BlockLayer {
  const std::uint8_t* weight;  ///< panels of 16 outputs, as blocks-inl.h lays them out
  std::size_t bits;            ///< 4, 6 or 8; k is a multiple of 256, for 8 bits of 64
  const float* bias;           ///< may be null
  std::size_t outputs;
  std::size_t k;
  bool gated;  ///< every other panel gates the next one: twice as many panels, no bias
};

/// Keys and values of one head, as QuantizeCross lays them out.
struct CrossHead {
  const std::uint8_t* key;
  const float* key_scale;
  const std::int8_t* value;
  const float* value_scale;
};

/// Which positions of which slot a row of SelfAttention sees: [0, shared) and [begin, at].
struct Place {
  std::size_t slot;
  std::size_t at;
  std::size_t shared;
  std::size_t begin;
};

/// Tables of LogMel, and their sizes.
struct MelTables {
  const float* basis;    ///< [2, panels, half, 16]
  const float* filters;  ///< [16 * panels, bands]
  std::size_t half;      ///< of the samples of a frame
  std::size_t panels;
  std::size_t bands;  ///< a multiple of 16
};

/// What a row of Choose may be: the text tokens [first, timestamps) and the timestamps [low, high),
/// all at most n, or the one token `score`, where that is below n.
struct Choice {
  std::size_t first;
  std::size_t timestamps;
  std::size_t low;
  std::size_t high;
  std::size_t score;
  std::uint32_t seed;
  float temperature;
};

struct Kernels {
  const char* name;

  /// q[i] = round(x[i] / scale), scale = max |x| / 127; all zero for a row of zeros.
  QuantizedRow (*quantize)(const float* x, std::size_t n, std::int8_t* q);

  /// The same of the row's layer norm.
  QuantizedRow (*norm_quantize)(const float* x, const Norm& norm, std::size_t n, std::int8_t* q);

  /// `panels` panels of 16 outputs, from panel `first` on, for `rows` rows; outputs beyond
  /// layer.outputs are not written. q is [rows, k] and may be read up to 64 bytes beyond its end;
  /// y and residual, which may be null, are [rows, outputs].
  void (*linear)(const Layer& layer, std::size_t first, std::size_t panels, const std::int8_t* q,
                 const QuantizedRow* quantized, std::size_t rows, const float* residual, float* y);

  /// Row `row` of rows, from x or its norm, n numbers: round(x[i] / scale), scale = max |x| / 127
  /// of each block; all zero for a block of zeros. n is a multiple of 32.
  void (*quantize_blocks)(const float* x, const RmsNorm& norm, std::size_t n,
                          const BlockedRows& rows, std::size_t row);

  /// Like `linear`, for weights in blocks; with `gated` first and panels are even. Weights may be
  /// prefetched up to 8 KB beyond their end.
  void (*block_linear)(const BlockLayer& layer, std::size_t first, std::size_t panels,
                       const BlockedRows& rows, const float* residual, float* y);

  /// y = x turned: dimensions i and half + i by the angle of cosine[i] and sine[i]; all apart in
  /// memory.
  void (*rotate)(const float* x, const float* cosine, const float* sine, std::size_t half,
                 float* y);

  /// Like `self_attention` for `heads` query heads side by side that share keys and values.
  void (*grouped_attention)(const float* query, std::size_t query_stride, std::size_t heads,
                            const Place* places, std::size_t rows, std::size_t width,
                            std::size_t size, const float* cache_k, const float* cache_v,
                            std::size_t slot_stride, float* y);

  /// One head of SelfAttention, when all keys and values are in the caches. Query rows are
  /// `query_stride` floats apart, y rows `width`; caches are [context, size] of this head in slot
  /// 0, and slots are `slot_stride` floats apart.
  void (*self_attention)(const float* query, std::size_t query_stride, const Place* places,
                         std::size_t rows, std::size_t width, std::size_t size,
                         const float* cache_k, const float* cache_v, std::size_t slot_stride,
                         float* y);

  /// One head of QuantizeCross: key and value rows are `stride` floats apart.
  void (*quantize_cross)(const float* key, const float* value, std::size_t positions,
                         std::size_t stride, std::size_t size, std::uint8_t* key_out,
                         float* key_scale, std::int8_t* value_out, float* value_scale);

  /// One head of CrossAttention: query rows are `query_stride` floats apart, y rows `width`.
  void (*cross_attention)(const float* query, std::size_t query_stride, std::size_t rows,
                          std::size_t width, std::size_t size, std::size_t positions,
                          const CrossHead& head, float* y);

  /// The same for Attention, with queries of 8 bits.
  void (*attention)(const float* query, std::size_t query_stride, std::size_t rows,
                    std::size_t width, std::size_t size, std::size_t positions,
                    const CrossHead& head, float* y);

  /// One row of Choose.
  void (*choose)(const float* logits, const float* suppress, std::size_t n, const Choice& choice,
                 std::int64_t* next, float* log_prob);

  /// Logarithms (base 10) of the mel energies of `frames` frames, `hop` samples apart: y is
  /// [frames, bands]. Returns the largest of them.
  float (*mel_energies)(const float* samples, std::size_t frames, std::size_t hop,
                        const MelTables& tables, float* y);

  /// The rest of LogMel: y[i] = max(y[i], least) / 4 + 1.
  void (*mel_scale)(std::size_t n, float least, float* y);
};

/// The best that every core of the process has, or the best up to the one that the environment
/// variable AS2D_KERNELS names. Throws Error if that is no name.
const Kernels& Best();

/// The best up to the one of this name. Throws Error if there is no such name.
const Kernels& BestUpTo(std::string_view most);

/// All that every core of the process's mask has, from the plainest to the best: a thread may find
/// itself on any of them.
std::vector<const Kernels*> Runnable();

/// The same for other `cores`, of which `info` tells.
std::vector<const Kernels*> Runnable(const CpuInfo& info, const CpuMask& cores);

// One of each is compiled where the compiler and the architecture can; null otherwise.
const Kernels* Amx();
const Kernels* Avx512Vnni();
const Kernels* Avx2();
const Kernels* NeonDotProd();
const Kernels* Portable();

}  // namespace as2d::kernels
