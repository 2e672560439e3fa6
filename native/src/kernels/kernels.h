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

  /// One head of SelfAttention. query_key_value points at the head's query in the first row, rows
  /// are `stride` floats apart, key and value follow at `width` and 2 * `width`; caches are
  /// [context, size] of this head; y rows are `width` apart.
  void (*self_attention)(const float* query_key_value, std::size_t rows, std::size_t width,
                         std::size_t size, std::size_t past, float* cache_k, float* cache_v,
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
