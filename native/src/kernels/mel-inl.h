// Spectra of audio. Part of kernels-inl.h.

namespace as2d::kernels {
namespace {

// Rows by 16 columns of a matrix product: y[r, j] = sum over i of x[r, i] * table[i, j].
template <std::size_t kRows>
inline void Multiply(const float* x, std::size_t x_stride, std::size_t n, const float* table,
                     std::size_t table_stride, float* y, std::size_t y_stride) {
  Sixteen sum[kRows];
  for (std::size_t i = 0; i < n; ++i) {
    const Sixteen line = Sixteen::At(table + i * table_stride);
    Each<kRows>([&](auto r)
                    __attribute__((always_inline)) { sum[r].Add(x[r * x_stride + i], line); });
  }
  Each<kRows>([&](auto r) __attribute__((always_inline)) { sum[r].Store(y + r * y_stride); });
}

// A frame and its mirror image: the real part of a spectrum is that of their sum, the imaginary
// part that of their difference, and each needs half of the samples.
void Fold(const float* frame, std::size_t half, float* sums, float* differences) {
  for (std::size_t i = 1; i <= half; ++i) {
    sums[i - 1] = frame[i] + frame[2 * half - i];
    differences[i - 1] = frame[i] - frame[2 * half - i];
  }
}

float MelEnergies(const float* samples, std::size_t frames, std::size_t hop,
                  const MelTables& tables, float* y) {
  constexpr std::size_t kFrames = 6;  // as many sums as even small sets of registers hold
  const std::size_t half = tables.half;
  const std::size_t bins = tables.panels * kPanel;
  thread_local std::vector<float> memory;
  float* const folded = Keep(memory, kFrames * 2 * (half + bins));
  float* const spectrum = folded + kFrames * 2 * half;
  float most = -std::numeric_limits<float>::infinity();
  for (std::size_t frame = 0; frame < frames; frame += kFrames) {
    const std::size_t count = std::min(kFrames, frames - frame);
    // What is left over from the frames before fills up the last block.
    for (std::size_t f = 0; f < count; ++f) {
      float* const to = folded + 2 * f * half;
      Fold(samples + (frame + f) * hop, half, to, to + half);
    }
    for (std::size_t part = 0; part < 2; ++part) {
      for (std::size_t panel = 0; panel < tables.panels; ++panel) {
        Multiply<kFrames>(folded + part * half, 2 * half, half,
                          tables.basis + (part * tables.panels + panel) * half * kPanel, kPanel,
                          spectrum + part * bins + panel * kPanel, 2 * bins);
      }
    }
    for (std::size_t f = 0; f < kFrames; ++f) {
      float* const real = spectrum + 2 * f * bins;
      const float* const imaginary = real + bins;
      for (std::size_t i = 0; i < bins; ++i) {
        real[i] = real[i] * real[i] + imaginary[i] * imaginary[i];
      }
    }
    float* const energies = folded;  // not needed any more
    for (std::size_t band = 0; band < tables.bands; band += kPanel) {
      Multiply<kFrames>(spectrum, 2 * bins, bins, tables.filters + band, tables.bands, energies,
                        kPanel);
      for (std::size_t f = 0; f < count; ++f) {
        float* const out = y + (frame + f) * tables.bands + band;
        for (std::size_t i = 0; i < kPanel; ++i) {
          out[i] = Log(std::max(energies[f * kPanel + i], 1e-10F)) * 0.434294482F;
        }
      }
    }
    most = std::max(most, Max(y + frame * tables.bands, count * tables.bands));
  }
  return most;
}

void MelScale(std::size_t n, float least, float* y) {
  for (std::size_t i = 0; i < n; ++i) y[i] = std::max(y[i], least) * 0.25F + 1.0F;
}

}  // namespace
}  // namespace as2d::kernels
