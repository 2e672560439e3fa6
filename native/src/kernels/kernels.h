// The arithmetic of the operators, one set of functions for each instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

namespace as2d::kernels {

/// A row of activations as signed 8-bit integers.
struct QuantizedRow {
  float scale = 0;       ///< x = scale * q
  std::int32_t sum = 0;  ///< of all q: undoes the 128 that unsigned operands carry
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

struct Kernels {
  const char* name;

  /// q[i] = round(x[i] / scale), scale = max |x| / 127; all zero for a row of zeros.
  QuantizedRow (*quantize)(const float* x, std::size_t n, std::int8_t* q);

  /// `panels` panels of 16 outputs for `rows` rows. `weight` points at the first panel, which
  /// begins with output `first`; outputs at and beyond `outputs` are not written. q is [rows, k],
  /// y is [rows, outputs]; bias may be null.
  void (*linear)(const std::int8_t* weight, std::size_t panels, std::size_t first,
                 std::size_t outputs, std::size_t k, const std::int8_t* q,
                 const QuantizedRow* quantized, std::size_t rows, const float* scale,
                 const float* bias, float* y);

  /// One head of SelfAttention, when all keys and values are in the caches. Query rows are
  /// `query_stride` floats apart, y rows `width`; caches are [context, size] of this head in slot
  /// 0, and slots are `slot_stride` floats apart.
  void (*self_attention)(const float* query, std::size_t query_stride, const Place* places,
                         std::size_t rows, std::size_t width, std::size_t size,
                         const float* cache_k, const float* cache_v, std::size_t slot_stride,
                         float* y);

  /// One head of QuantizeCross: key and value rows are `width` floats apart.
  void (*quantize_cross)(const float* key, const float* value, std::size_t positions,
                         std::size_t width, std::size_t size, std::uint8_t* key_out,
                         float* key_scale, std::int8_t* value_out, float* value_scale);

  /// One head of CrossAttention: query and y rows are `width` floats apart.
  void (*cross_attention)(const float* query, std::size_t rows, std::size_t width, std::size_t size,
                          std::size_t positions, const CrossHead& head, float* y);

  /// One row of Choose.
  void (*choose)(const float* logits, const float* suppress, std::size_t n, std::int64_t* next,
                 float* log_prob);
};

/// The best that this processor has.
const Kernels& Best();

// One of each is compiled where the compiler and the architecture can; null otherwise.
const Kernels* Avx512Vnni();
const Kernels* Avx2();
const Kernels* NeonDotProd();
const Kernels* Portable();

}  // namespace as2d::kernels
