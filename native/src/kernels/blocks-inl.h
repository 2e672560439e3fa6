// Linear layers of weights in blocks: 4, 6 or 8 bits, with a scale for each 32 inputs of an output,
// and inputs of 8 bits with a scale for each 32 of them. Part of kernels-inl.h.
//
// A panel is 16 outputs. Its blocks follow one another; what a few of them share comes before them,
// so that all of a panel is one stretch of memory that is read once, from its beginning to its end.

namespace as2d::kernels {
namespace {

constexpr std::size_t kBlockSteps = kBlock / 4;  // of four inputs

inline const std::uint16_t* HalvesAt(const std::uint8_t* at) {
  return reinterpret_cast<const std::uint16_t*>(at);
}

/// The format Q4_K of GGUF: weight = d * scale * nibble - least * minimum, where 8 blocks share d
/// and least (16 bits each, floating) and each has scale and minimum (whole numbers of 8 bits).
/// Per 256 inputs: d [16], least [16], scale [8, 16], minimum [8, 16], nibbles [8, 4, 16, 4] of
/// which the lower halves are of one step of four inputs and the upper ones of the next.
struct FourBits {
  using Kind = Nibbles;
  static constexpr std::size_t kBlocks = 8;
  static constexpr std::size_t kBytes = 64 + 2 * kBlocks * kPanel + kBlocks * kBlock * kPanel / 2;
  static constexpr std::size_t kParts = 1;
  static constexpr bool kHasLeast = true;

  explicit FourBits(const std::uint8_t* at)
      : at_(at),
        unit_(Sixteen::OfHalves(HalvesAt(at))),
        least_(Sixteen::OfHalves(HalvesAt(at) + kPanel) * -1.0F) {}

  /// Of one of kParts parts of a block.
  Sixteen Scale(std::size_t block, std::size_t) const {
    return unit_ * Sixteen::OfBytes(at_ + 64 + block * kPanel);
  }
  /// What is added for each 1 of the inputs' sum.
  Sixteen Least(std::size_t block) const {
    return least_ * Sixteen::OfBytes(at_ + 64 + (kBlocks + block) * kPanel);
  }
  /// Steps 2 * pair and 2 * pair + 1.
  template <std::size_t pair>
  [[gnu::always_inline]] void Load(std::size_t block, Kind::Bytes* low, Kind::Bytes* high) const {
    const std::uint8_t* const at =
        at_ + 64 + 2 * kBlocks * kPanel + (block * kBlockSteps / 2 + pair) * kPanelStep;
    __builtin_prefetch(at + kAhead, 0, 2);
    Kind::Load(at, low, high);
  }

 private:
  static constexpr std::size_t kAhead = 2048;
  const std::uint8_t* const at_;
  const Sixteen unit_;
  const Sixteen least_;
};

/// The format Q6_K of GGUF: weight = d * scale * (number - 32), where 16 halves of blocks share d
/// (16 bits, floating) and each has its scale (a signed byte). Per 256 inputs: d [16] and as many
/// bytes of nothing, scale [16, 16], the numbers' lower nibbles as FourBits has them, and their
/// upper two bits [16, 16, 4], of four steps in a byte, the first one's lowest.
struct SixBits {
  using Kind = Nibbles;
  static constexpr std::size_t kBlocks = 8;
  static constexpr std::size_t kParts = 2;
  static constexpr std::size_t kScales = 64 + 2 * kBlocks * kPanel;
  static constexpr std::size_t kLower = kBlocks * kBlock * kPanel / 2;
  static constexpr std::size_t kBytes = kScales + kLower + kLower / 2;
  static constexpr bool kHasLeast = false;

  explicit SixBits(const std::uint8_t* at) : at_(at), unit_(Sixteen::OfHalves(HalvesAt(at))) {}

  Sixteen Scale(std::size_t block, std::size_t part) const {
    return unit_ * Sixteen::OfSignedBytes(at_ + 64 + (2 * block + part) * kPanel);
  }
  template <std::size_t pair>
  [[gnu::always_inline]] void Load(std::size_t block, Kind::Bytes* low, Kind::Bytes* high) const {
    const std::uint8_t* const lower = at_ + kScales + (block * kBlockSteps / 2 + pair) * kPanelStep;
    const std::uint8_t* const upper =
        at_ + kScales + kLower + (block * kBlockSteps / 4 + pair / 2) * kPanelStep;
    __builtin_prefetch(lower + kAhead, 0, 2);
    if constexpr (pair % 2 == 0) __builtin_prefetch(upper + kAhead, 0, 2);
    Kind::Load(lower, low, high);
    Kind::Raise<pair % 2 * 2>(upper, low);
    Kind::Raise<pair % 2 * 2 + 1>(upper, high);
  }

 private:
  static constexpr std::size_t kAhead = kBytes;
  const std::uint8_t* const at_;
  const Sixteen unit_;
};

/// Signed bytes with a scale (16 bits, floating) for each block. Per 64 inputs: scale [2, 16],
/// weight [2, 8, 16, 4].
struct EightBits {
  using Kind = SignedBySigned;
  static constexpr std::size_t kBlocks = 2;
  static constexpr std::size_t kBytes = 2 * kBlocks * kPanel + kBlocks * kBlock * kPanel;
  static constexpr std::size_t kParts = 1;
  static constexpr bool kHasLeast = false;

  explicit EightBits(const std::uint8_t* at) : at_(at) {}

  Sixteen Scale(std::size_t block, std::size_t) const {
    return Sixteen::OfHalves(HalvesAt(at_) + block * kPanel);
  }
  template <std::size_t pair>
  [[gnu::always_inline]] void Load(std::size_t block, Kind::Bytes* low, Kind::Bytes* high) const {
    const std::uint8_t* const at =
        at_ + 2 * kBlocks * kPanel + (block * kBlockSteps + 2 * pair) * kPanelStep;
    __builtin_prefetch(at + kAhead, 0, 2);
    __builtin_prefetch(at + kAhead + kPanelStep, 0, 2);
    *low = Kind::Load(at);
    *high = Kind::Load(at + kPanelStep);
  }

 private:
  static constexpr std::size_t kAhead = 4096;
  const std::uint8_t* const at_;
};

/// Rows go through a layer in groups of Lanes::kPanelRows. What belongs to a block of all rows of a
/// group lies side by side, so that one number says where it all is.
struct RowGroup {
  std::size_t count;
  const std::int8_t* q;        // [k / 32, count, 32]
  const float* scale;          // [k / 32, count]
  const float* total;          // likewise
  const std::int32_t* offset;  // likewise
  const std::int32_t* halves;  // [k / 32, 2, count]
};

// The one that begins at `row`.
inline RowGroup GroupAt(const BlockedRows& rows, std::size_t row, std::size_t k) {
  const std::size_t at = row * (k / kBlock);
  return {.count = std::min(Lanes::kPanelRows, rows.count - row),
          .q = rows.q + row * k,
          .scale = rows.scale + at,
          .total = rows.total + at,
          .offset = rows.offset + at,
          .halves = rows.halves + 2 * at};
}

// One panel for kRows rows: y is [kRows, 16]. What is summed in floating point is summed block by
// block, for every row alike.
template <typename Format, std::size_t kRows>
[[gnu::noinline]] void BlockPanel(const std::uint8_t* weight, std::size_t k, const RowGroup& rows,
                                  float* y) {
  using Kind = typename Format::Kind;
  const std::int8_t* q = rows.q;
  const float* scale = rows.scale;
  const float* total = rows.total;
  const std::int32_t* offset = rows.offset;
  const std::int32_t* halves = rows.halves;
  Sixteen sum[kRows];
  for (std::size_t left = k / kBlock; left > 0; left -= Format::kBlocks) {
    const Format format(weight);
    weight += Format::kBytes;
    for (std::size_t block = 0; block < Format::kBlocks; ++block) {
      Each<Format::kParts>([&](auto part) __attribute__((always_inline)) {
        typename Kind::Dots dots[kRows];
        Each<kRows>([&](auto r) __attribute__((always_inline)) {
          if constexpr (Format::kParts == 2) {
            dots[r] = Kind::Begin(halves[part * kRows + r]);
          } else {
            dots[r] = Kind::Begin(Kind::kOffset == 0 ? 0 : offset[r]);
          }
        });
        constexpr std::size_t kPairs = kBlockSteps / 2 / Format::kParts;
        Each<kPairs>([&](auto in_part) __attribute__((always_inline)) {
          constexpr std::size_t kPair = part * kPairs + in_part;
          typename Kind::Bytes bytes[2];
          format.template Load<kPair>(block, &bytes[0], &bytes[1]);
          Each<2>([&](auto half) __attribute__((always_inline)) {
            Each<kRows>([&](auto r) __attribute__((always_inline)) {
              std::int32_t word;
              std::memcpy(&word, q + r * kBlock + (2 * kPair + half) * 4, sizeof word);
              Kind::Add(dots[r], Kind::Spread(word), bytes[half]);
            });
          });
        });
        const Sixteen unit = format.Scale(block, part);
        Each<kRows>([&](auto r) __attribute__((always_inline)) {
          alignas(64) std::int32_t whole[kPanel];
          Kind::Store(dots[r], whole);
          sum[r].Add(Sixteen::OfIntegers(whole), unit * scale[r]);
        });
      });
      if constexpr (Format::kHasLeast) {
        const Sixteen least = format.Least(block);
        Each<kRows>([&](auto r) __attribute__((always_inline)) { sum[r].Add(total[r], least); });
      }
      q += kRows * kBlock;
      scale += kRows;
      total += kRows;
      offset += kRows;
      halves += 2 * kRows;
    }
  }
  Each<kRows>([&](auto r) __attribute__((always_inline)) { sum[r].Store(y + r * kPanel); });
}

template <typename Format>
void BlockPanelOf(const std::uint8_t* weight, std::size_t k, const RowGroup& rows, float* y) {
  [&]<std::size_t... kLess>(std::index_sequence<kLess...>) {
    ((rows.count == kLess + 1 ? BlockPanel<Format, kLess + 1>(weight, k, rows, y) : void()), ...);
  }(std::make_index_sequence<Lanes::kPanelRows>());
}

// From a panel's sums to outputs [at, at + left) of a row: bias and residual are of `at`, or null.
[[gnu::noinline]] void FinishPanel(const float* sums, std::size_t left, const float* bias,
                                   const float* residual, float* y) {
  float values[kPanel];
  std::memcpy(values, sums, sizeof values);
  if (bias != nullptr) {
    for (std::size_t i = 0; i < left; ++i) values[i] += bias[i];
  }
  if (residual != nullptr) {
    for (std::size_t i = 0; i < left; ++i) values[i] += residual[i];
  }
  std::memcpy(y, values, left * sizeof(float));
}

// y = gate * logistic(gate) * value: the "SwiGLU" of Shazeer 2020.
[[gnu::noinline]] void FinishGated(const float* gate, const float* value, std::size_t left,
                                   float* y) {
  float values[kPanel];
  for (std::size_t i = 0; i < kPanel; ++i) {
    const float beyond = Exp(-std::fabs(gate[i]));
    const float part = gate[i] < 0 ? beyond : 1.0F;
    values[i] = gate[i] * value[i] * (part / (1.0F + beyond));
  }
  std::memcpy(y, values, left * sizeof(float));
}

template <typename Format>
void BlockLayerRows(const BlockLayer& layer, std::size_t first, std::size_t panels,
                    const BlockedRows& rows, const float* residual, float* y) {
  const std::size_t panel_bytes = layer.k / kBlock / Format::kBlocks * Format::kBytes;
  const std::size_t together = layer.gated ? 2 : 1;
  const std::size_t width = layer.outputs;
  alignas(64) float sums[2][Lanes::kPanelRows * kPanel];
  for (std::size_t panel = first; panel < first + panels; panel += together) {
    const std::size_t at = panel / together * kPanel;
    const std::size_t left = std::min(kPanel, width - at);
    for (std::size_t row = 0; row < rows.count; row += Lanes::kPanelRows) {
      const RowGroup group = GroupAt(rows, row, layer.k);
      for (std::size_t i = 0; i < together; ++i) {
        BlockPanelOf<Format>(layer.weight + (panel + i) * panel_bytes, layer.k, group, sums[i]);
      }
      for (std::size_t r = 0; r < group.count; ++r) {
        const std::size_t to = (row + r) * width + at;
        if (layer.gated) {
          FinishGated(sums[0] + r * kPanel, sums[1] + r * kPanel, left, y + to);
        } else {
          FinishPanel(sums[0] + r * kPanel, left, layer.bias == nullptr ? nullptr : layer.bias + at,
                      residual == nullptr ? nullptr : residual + to, y + to);
        }
      }
    }
  }
}

void BlockLinear(const BlockLayer& layer, std::size_t first, std::size_t panels,
                 const BlockedRows& rows, const float* residual, float* y) {
  if (layer.bits == 4) {
    BlockLayerRows<FourBits>(layer, first, panels, rows, residual, y);
  } else if (layer.bits == 6) {
    BlockLayerRows<SixBits>(layer, first, panels, rows, residual, y);
  } else {
    BlockLayerRows<EightBits>(layer, first, panels, rows, residual, y);
  }
}

// One block, and the sums of its halves; returns its scale.
[[gnu::noinline]] float QuantizeBlock(const float* x, std::int8_t* q, std::int32_t* sums) {
  const float most = MaxAbs(x, kBlock);
  const float inverse = most > 1e-30F ? 127.0F / most : 0.0F;
  std::int32_t values[kBlock];
  for (std::size_t i = 0; i < kBlock; ++i) {
    // The sum is of what is stored, which is bounded whatever x is.
    const auto bits = static_cast<std::uint32_t>(Round(x[i] * inverse));
    values[i] = static_cast<std::int32_t>(bits << 24) >> 24;
  }
  sums[0] = 0;
  sums[1] = 0;
  for (std::size_t i = 0; i < kBlock / 2; ++i) sums[0] += values[i];
  for (std::size_t i = kBlock / 2; i < kBlock; ++i) sums[1] += values[i];
  for (std::size_t i = 0; i < kBlock; ++i) q[i] = static_cast<std::int8_t>(values[i]);
  return most / 127.0F;
}

void QuantizeBlocks(const float* x, const RmsNorm& norm, std::size_t n, const BlockedRows& rows,
                    std::size_t row) {
  thread_local std::vector<float> memory;
  if (norm.gamma != nullptr) {
    float* const y = Keep(memory, n);
    for (std::size_t i = 0; i < n; ++i) y[i] = x[i] * x[i];
    const float inverse = 1.0F / std::sqrt(Sum(y, n) / static_cast<float>(n) + norm.epsilon);
    for (std::size_t i = 0; i < n; ++i) y[i] = x[i] * inverse * norm.gamma[i];
    x = y;
  }
  const std::size_t first = row - row % Lanes::kPanelRows;
  const RowGroup group = GroupAt(rows, first, n);
  for (std::size_t block = 0; block < n / kBlock; ++block) {
    std::int32_t sums[2];
    const std::size_t at = first * (n / kBlock) + block * group.count;
    const std::size_t to = at + row - first;
    rows.scale[to] = QuantizeBlock(x + block * kBlock, rows.q + to * kBlock, sums);
    rows.total[to] = rows.scale[to] * static_cast<float>(sums[0] + sums[1]);
    rows.offset[to] = -EightBits::Kind::kOffset * (sums[0] + sums[1]);
    for (std::size_t half = 0; half < 2; ++half) {
      rows.halves[2 * at + half * group.count + row - first] = -32 * sums[half];
    }
  }
}

}  // namespace
}  // namespace as2d::kernels
