// Products of 8-bit integers: what all the time goes into. Part of kernels-inl.h.
//
// sums[r, 16 p + i] = sum over t of a[r, t] * b[p, t / 4, i, t % 4], for rows r and panels p.

#include <utility>

namespace as2d::kernels {
namespace {

constexpr std::size_t kPanel = 16;              // outputs, or positions, side by side
constexpr std::size_t kPanelStep = 4 * kPanel;  // bytes for four inputs of a panel

/// Operands of Products and where the sums go, in bytes and numbers from row to row.
struct Factors {
  const void* a;
  std::size_t a_stride;
  std::size_t rows;
  const void* b;
  std::size_t panels;
  std::size_t k;
  std::int32_t* sums;
  std::size_t sums_stride;
};

// kRows rows by kPanels panels, in registers. With few of them the inputs are shared out over
// kUnroll sums each, since a sum alone would wait for itself.
template <typename Kind, std::size_t kRows, std::size_t kPanels, std::size_t kUnroll>
[[gnu::noinline]] void Block(const std::uint8_t* a, std::size_t a_stride, const std::uint8_t* b,
                             std::size_t k, std::int32_t* sums, std::size_t sums_stride) {
  constexpr std::size_t kSums = kRows * kPanels;  // sum r * kPanels + p, and kUnroll of these
  Lanes::Sum sum[kSums * kUnroll];
  Each<kSums * kUnroll>([&](auto i) __attribute__((always_inline)) { sum[i] = Lanes::Zero(); });
  const std::size_t panel_bytes = kPanel * k;
  const auto add = [&](std::size_t step, auto u) __attribute__((always_inline)) {
    typename Kind::Bytes bytes[kPanels];
    Each<kPanels>([&](auto p) __attribute__((always_inline)) {
      const std::uint8_t* const at = b + p * panel_bytes + step * kPanelStep;
      bytes[p] = Kind::Load(at);
      // Weights come from memory: with several rows, the processor alone does not look far enough
      // ahead to have those of the next block in time.
      if constexpr (std::is_same_v<Kind, SignedBySigned>) {
        __builtin_prefetch(at + kPanels * panel_bytes, 0, 2);
      }
    });
    Each<kRows>([&](auto r) __attribute__((always_inline)) {
      std::int32_t number;
      std::memcpy(&number, a + r * a_stride + step * 4, sizeof number);
      const typename Kind::Word word = Kind::Spread(number);
      Each<kPanels>([&](auto p) __attribute__((always_inline)) {
        Kind::Add(sum[u * kSums + r * kPanels + p], word, bytes[p]);
      });
    });
  };
  const std::size_t steps = k / 4;
  std::size_t step = 0;
  for (; step + kUnroll <= steps; step += kUnroll) {
    Each<kUnroll>([&](auto u) __attribute__((always_inline)) { add(step + u, u); });
  }
  for (; step < steps; ++step) add(step, std::integral_constant<std::size_t, 0>());
  Each<kRows>([&](auto r) __attribute__((always_inline)) {
    Each<kPanels>([&](auto p) __attribute__((always_inline)) {
      Lanes::Sum& whole = sum[r * kPanels + p];
      Each<kUnroll - 1>([&](auto u) __attribute__((always_inline)) {
        whole = Lanes::Both(whole, sum[(u + 1) * kSums + r * kPanels + p]);
      });
      Lanes::Store(whole, sums + r * sums_stride + p * kPanel);
    });
  });
}

template <typename Kind, std::size_t kPanels>
void RowBlocks(const Factors& f, std::size_t panel) {
  const auto* const a = static_cast<const std::uint8_t*>(f.a);
  const auto* const b = static_cast<const std::uint8_t*>(f.b) + panel * kPanel * f.k;
  std::int32_t* const sums = f.sums + panel * kPanel;
  const auto block = [&]<std::size_t kRows>(std::size_t row) {
    constexpr std::size_t kUnroll = std::max<std::size_t>(1, Lanes::kChains / (kRows * kPanels));
    Block<Kind, kRows, kPanels, kUnroll>(a + row * f.a_stride, f.a_stride, b, f.k,
                                         sums + row * f.sums_stride, f.sums_stride);
  };
  constexpr std::size_t kMost = Lanes::kBlockRows;
  std::size_t row = 0;
  for (; row + kMost <= f.rows; row += kMost) block.template operator()<kMost>(row);
  const auto rest = [&]<std::size_t... kLess>(std::index_sequence<kLess...>) {
    ((f.rows - row == kLess + 1 ? block.template operator()<kLess + 1>(row) : void()), ...);
  };
  rest(std::make_index_sequence<kMost - 1>());
}

template <typename Kind>
std::int32_t PlainProducts(const Factors& f) {
  std::size_t panel = 0;
  constexpr std::size_t kPanels = Lanes::kBlockPanels;
  for (; panel + kPanels <= f.panels; panel += kPanels) RowBlocks<Kind, kPanels>(f, panel);
  for (; panel < f.panels; ++panel) RowBlocks<Kind, 1>(f, panel);
  return Kind::kOffset;
}

#ifdef AS2D_KERNELS_TILES
}  // namespace
}  // namespace as2d::kernels
#include "tiles-inl.h"
namespace as2d::kernels {
namespace {
#else

struct Workspace {};

template <typename Kind>
std::int32_t Products(const Workspace&, const Factors& f) {
  return PlainProducts<Kind>(f);
}

#endif

}  // namespace
}  // namespace as2d::kernels
