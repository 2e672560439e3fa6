// Rows to 8 bits, and Linear. Part of kernels-inl.h.

namespace as2d::kernels {
namespace {

QuantizedRow Quantize(const float* __restrict x, std::size_t n, std::int8_t* __restrict q) {
  // In pieces that stay in the nearest cache: compilers do better at two simple loops than at one.
  constexpr std::size_t kPiece = 256;
  QuantizedRow row;
  const float most = MaxAbs(x, n);
  // A row of zeros, or one too small to divide by: all of it is zero.
  const float inverse = most > 1e-30F ? 127.0F / most : 0.0F;
  row.scale = most / 127.0F;
  for (std::size_t begin = 0; begin < n; begin += kPiece) {
    const std::size_t count = std::min(kPiece, n - begin);
    std::int32_t values[kPiece];
    for (std::size_t i = 0; i < count; ++i) {
      // The sum is of what is stored, which is bounded whatever x is.
      const auto bits = static_cast<std::uint32_t>(Round(x[begin + i] * inverse));
      values[i] = static_cast<std::int32_t>(bits << 24) >> 24;
      row.sum += values[i];
    }
    for (std::size_t i = 0; i < count; ++i) q[begin + i] = static_cast<std::int8_t>(values[i]);
  }
  return row;
}

QuantizedRow NormQuantize(const float* x, const Norm& norm, std::size_t n, std::int8_t* q) {
  thread_local std::vector<float> memory;
  float* const y = Keep(memory, n);
  const auto count = static_cast<float>(n);
  const float mean = Sum(x, n) / count;
  for (std::size_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * (x[i] - mean);
  const float inverse = 1.0F / std::sqrt(Sum(y, n) / count + 1e-5F);
  for (std::size_t i = 0; i < n; ++i) {
    y[i] = (x[i] - mean) * inverse * norm.gamma[i] + norm.beta[i];
  }
  return Quantize(y, n, q);
}

constexpr std::size_t kSumPanels = 4;
constexpr std::size_t kSumsStride = kSumPanels * kPanel;

// From integers to outputs. One piece of code for every row, wherever in a block it is.
template <bool kGelu>
[[gnu::noinline]] void Finish(const Layer& layer, std::size_t output, std::size_t count,
                              const std::int32_t* sums, std::int32_t offset,
                              const QuantizedRow* quantized, std::size_t rows,
                              const float* residual, float* y) {
  for (std::size_t r = 0; r < rows; ++r) {
    const std::int32_t shift = offset * quantized[r].sum;
    const float scale = quantized[r].scale;
    for (std::size_t i = 0; i < count; i += kPanel) {
      const std::size_t at = output + i;
      const std::int32_t* const from = sums + r * kSumsStride + i;
      float values[kPanel];
      const auto finish = [&](const float* scales, const float* bias, const float* add,
                              float* out) {
        for (std::size_t j = 0; j < kPanel; ++j) {
          float value = static_cast<float>(from[j] - shift) * (scale * scales[j]);
          if (bias != nullptr) value += bias[j];
          values[j] = kGelu ? Gelu(value) : value;
        }
        if (add != nullptr) {
          for (std::size_t j = 0; j < kPanel; ++j) values[j] += add[j];
        }
        std::memcpy(out, values, sizeof values);
      };
      const float* const bias = layer.bias == nullptr ? nullptr : layer.bias + at;
      const std::size_t to = r * layer.outputs + at;
      const float* const add = residual == nullptr ? nullptr : residual + to;
      const std::size_t left = layer.outputs - at;
      if (left >= kPanel) {
        finish(layer.scale + at, bias, add, y + to);
      } else {
        // The last panel, whose end is beyond the last output.
        float parts[4][kPanel] = {};
        std::memcpy(parts[0], layer.scale + at, left * sizeof(float));
        if (bias != nullptr) std::memcpy(parts[1], bias, left * sizeof(float));
        if (add != nullptr) std::memcpy(parts[2], add, left * sizeof(float));
        finish(parts[0], bias == nullptr ? nullptr : parts[1], add == nullptr ? nullptr : parts[2],
               parts[3]);
        std::memcpy(y + to, parts[3], left * sizeof(float));
      }
    }
  }
}

void Linear(const Layer& layer, std::size_t first, std::size_t panels, const std::int8_t* q,
            const QuantizedRow* quantized, std::size_t rows, const float* residual, float* y) {
  alignas(64) std::int32_t sums[Lanes::kSumRows * kSumsStride];
  const auto finish = layer.gelu ? Finish<true> : Finish<false>;
  const Workspace workspace;
  for (std::size_t row = 0; row < rows; row += Lanes::kSumRows) {
    const std::size_t count = std::min(Lanes::kSumRows, rows - row);
    const std::size_t at = row * layer.outputs;
    for (std::size_t panel = first; panel < first + panels; panel += kSumPanels) {
      const std::size_t together = std::min(kSumPanels, first + panels - panel);
      const std::int32_t offset =
          Products<SignedBySigned>(workspace, {.a = q + row * layer.k,
                                               .a_stride = layer.k,
                                               .rows = count,
                                               .b = layer.weight + panel * kPanel * layer.k,
                                               .panels = together,
                                               .k = layer.k,
                                               .sums = sums,
                                               .sums_stride = kSumsStride});
      finish(layer, panel * kPanel, together * kPanel, sums, offset, quantized + row, count,
             residual == nullptr ? nullptr : residual + at, y + at);
    }
  }
}

}  // namespace
}  // namespace as2d::kernels
