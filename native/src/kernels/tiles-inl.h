// Products in the tile registers of AMX: 16 rows by 16 columns of sums, 64 bytes of each operand at
// a time. The layout of the second operand is the one that the tiles want. Part of kernels-inl.h.

namespace as2d::kernels {
namespace {

/// The shape of the tiles is loaded when it is needed and given up at the end: the runtime's own
/// kernels use the same registers.
class Workspace {
 public:
  Workspace() = default;
  ~Workspace() {
    if (first_ != 0) _tile_release();
  }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  /// Tiles 0 and 1 hold sums of `first` rows and 4 that many of operand a; 2, 3 and 5 do of
  /// `second`. 6 and 7 are for operand b.
  void Shape(std::size_t first, std::size_t second) const {
    if (first == first_ && second == second_) return;
    first_ = first;
    second_ = second;
    struct alignas(64) {
      std::uint8_t palette = 1;
      std::uint8_t start_row = 0;
      std::uint8_t reserved[14] = {};
      std::uint16_t bytes[16] = {};
      std::uint8_t rows[16] = {};
    } shape;
    static_assert(sizeof shape == 64);
    for (std::size_t tile = 0; tile < 8; ++tile) {
      const bool of_second = tile == 2 || tile == 3 || tile == 5;
      shape.bytes[tile] = kTile;
      shape.rows[tile] = static_cast<std::uint8_t>(tile >= 6 ? 16 : of_second ? second : first);
    }
    _tile_loadconfig(&shape);
  }

  static constexpr std::size_t kTile = 64;  // bytes of a line of a tile

 private:
  mutable std::size_t first_ = 0;  // 0: nothing is loaded
  mutable std::size_t second_ = 0;
};

// Tile numbers are part of an instruction. Unlike the compilers' own functions for them, these also
// say that memory is read.
template <int kTile>
[[gnu::always_inline]] inline void Zero() {
  asm volatile("tilezero %%tmm%c0" ::"i"(kTile));
}
template <int kTile>
[[gnu::always_inline]] inline void Load(const void* from, std::size_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride), "i"(kTile) : "memory");
}
template <int kTile>
[[gnu::always_inline]] inline void Store(void* to, std::size_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(stride), "i"(kTile) : "memory");
}
template <typename Kind, int kSum, int kA, int kB>
[[gnu::always_inline]] inline void Multiply() {
  if constexpr (std::is_same_v<Kind, SignedBySigned>) {
    asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSum), "i"(kA), "i"(kB));
  } else if constexpr (std::is_same_v<Kind, SignedByUnsigned>) {
    asm volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSum), "i"(kA), "i"(kB));
  } else {
    asm volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSum), "i"(kA), "i"(kB));
  }
}

// kPanels panels by up to 16 rows, or up to two by 32: four tiles of sums, none of which waits for
// itself.
template <typename Kind, std::size_t kPanels, bool kSecondRows>
[[gnu::noinline]] void TileBlock(const std::uint8_t* a, std::size_t a_stride, const std::uint8_t* b,
                                 std::size_t k, std::int32_t* sums, std::size_t sums_stride) {
  static_assert(kPanels <= (kSecondRows ? 2 : 4));
  constexpr std::size_t kTile = Workspace::kTile;
  const std::size_t panel_bytes = kPanel * k;
  Each<kSecondRows ? 2 + kPanels : kPanels>([](auto tile) { Zero<tile>(); });
  const auto add = [&](std::size_t i, const std::uint8_t* panels, std::size_t stride)
                       __attribute__((always_inline)) {
                         Load<4>(a + i, a_stride);
                         if constexpr (kSecondRows) Load<5>(a + 16 * a_stride + i, a_stride);
                         Each<kPanels>([&](auto p) __attribute__((always_inline)) {
                           constexpr int kB = 6 + p % 2;
                           Load<kB>(panels + p * stride, kTile);
                           Multiply<Kind, p, 4, kB>();
                           if constexpr (kSecondRows) Multiply<Kind, 2 + p, 5, kB>();
                         });
                       };
  std::size_t i = 0;
  for (; i + kTile <= k; i += kTile) add(i, b + i * kPanel, panel_bytes);
  if (i < k) {
    // The last of b with zeros after it; those make nothing of whatever follows in a.
    alignas(64) std::uint8_t last[kPanels][kTile * kPanel] = {};
    for (std::size_t p = 0; p < kPanels; ++p) {
      std::memcpy(last[p], b + p * panel_bytes + i * kPanel, (k - i) * kPanel);
    }
    add(i, last[0], sizeof last[0]);
  }
  const std::size_t stride = sums_stride * sizeof *sums;
  Each<kPanels>([&](auto p) {
    Store<p>(sums + p * kPanel, stride);
    if constexpr (kSecondRows) Store<2 + p>(sums + 16 * sums_stride + p * kPanel, stride);
  });
}

constexpr std::size_t kLeastTileRows = 3;

template <typename Kind>
std::int32_t Products(const Workspace& workspace, const Factors& f) {
  // With very few rows, what counts is how fast b is read.
  if (f.rows < kLeastTileRows) return PlainProducts<Kind>(f);
  const auto* const a = static_cast<const std::uint8_t*>(f.a);
  const auto* const b = static_cast<const std::uint8_t*>(f.b);
  for (std::size_t row = 0; row < f.rows; row += 32) {
    const std::size_t rows = std::min<std::size_t>(32, f.rows - row);
    const bool second = rows > 16;
    workspace.Shape(std::min<std::size_t>(16, rows), second ? rows - 16 : rows);
    const std::size_t most = second ? 2 : 4;
    for (std::size_t panel = 0; panel < f.panels; panel += most) {
      const auto run = [&]<std::size_t kPanels, bool kSecondRows>() {
        TileBlock<Kind, kPanels, kSecondRows>(
            a + row * f.a_stride, f.a_stride, b + panel * kPanel * f.k, f.k,
            f.sums + row * f.sums_stride + panel * kPanel, f.sums_stride);
      };
      const std::size_t panels = std::min(most, f.panels - panel);
      if (second) {
        panels == 2 ? run.template operator()<2, true>() : run.template operator()<1, true>();
      } else if (panels == 4) {
        run.template operator()<4, false>();
      } else if (panels == 3) {
        run.template operator()<3, false>();
      } else if (panels == 2) {
        run.template operator()<2, false>();
      } else {
        run.template operator()<1, false>();
      }
    }
  }
  return 0;
}

}  // namespace
}  // namespace as2d::kernels
