// All kernels, written once. Each instruction set's source file defines, in its own anonymous
// namespace, how 8-bit integers are multiplied, includes this file, and is compiled with that
// instruction set: everything else is plain C++ that the compiler vectorises. No include guards:
// that is the point.
//
// Lanes::Sum: 16 sums of 32 bits, with Zero, Both (of two), Store.
// Lanes::kBlockRows, kBlockPanels: as many sums at once as there are registers for.
// Lanes::kChains: as many as are needed for none to wait for itself.
// Lanes::kSumRows: rows of Linear at once: their inputs stay in the nearest cache.
// Lanes::kAttentionRows: rows of attention at once.
// SignedBySigned, SignedByUnsigned, UnsignedBySigned: pairings of operands, each with Bytes
//   Load([16][4]), Word Spread(four bytes), and Add(sum, word, bytes): each of the 16 takes the dot
//   product of its four bytes with the word's, which are what the name says first. kOffset is what
//   Load added to the bytes.
// AS2D_KERNELS_TILES: defined where tiles-inl.h is to multiply.

#include "each.h"
#include "kernels.h"

// Each needs those before it.
// clang-format off
#include "math-inl.h"
#include "products-inl.h"
#include "linear-inl.h"
#include "attention-inl.h"
#include "mel-inl.h"
// clang-format on

namespace as2d::kernels {
namespace {

void Choose(const float* logits, const float* suppress, std::size_t n, std::int64_t* next,
            float* log_prob) {
  // In pieces that stay in the nearest cache; what has been summed up shrinks when there is a
  // larger one.
  constexpr std::size_t kPiece = 512;
  constexpr float kToBase2 = 1.44269504F;
  float most = -std::numeric_limits<float>::infinity();
  std::size_t best = n;  // first of the piece that holds the largest, if there is a number at all
  float total = 0;
  for (std::size_t begin = 0; begin < n; begin += kPiece) {
    const std::size_t count = std::min(kPiece, n - begin);
    float values[kPiece];
    for (std::size_t i = 0; i < count; ++i) values[i] = logits[begin + i] + suppress[begin + i];
    const float largest = Max(values, count);
    if (largest > most) {
      total *= Exp2((most - largest) * kToBase2);
      most = largest;
      best = begin;
    }
    for (std::size_t i = 0; i < count; ++i) values[i] = Exp2((values[i] - most) * kToBase2);
    total += Sum(values, count);
  }
  while (best < n && !(logits[best] + suppress[best] >= most)) ++best;
  *next = static_cast<std::int64_t>(best < n ? best : 0);
  *log_prob = -std::log(total);
}

constexpr Kernels kKernels = {
    .name = Lanes::kName,
    .quantize = Quantize,
    .norm_quantize = NormQuantize,
    .linear = Linear,
    .self_attention = SelfAttention,
    .quantize_cross = QuantizeCross,
    .cross_attention = TiledAttention<2>,
    .attention = TiledAttention<1>,
    .choose = Choose,
    .mel_energies = MelEnergies,
    .mel_scale = MelScale,
};

}  // namespace
}  // namespace as2d::kernels
