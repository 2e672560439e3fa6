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

// The largest of logits + suppress, and where the first such is, if it is a number.
struct Choice {
  float most = -std::numeric_limits<float>::infinity();
  std::size_t at = 0;
};

Choice LargestOf(const float* __restrict logits, const float* __restrict suppress, std::size_t n,
                 float* __restrict values) {
  Choice choice;
  std::size_t piece = n;  // where it is, if anywhere
  constexpr std::size_t kPiece = 512;
  for (std::size_t begin = 0; begin < n; begin += kPiece) {
    const std::size_t count = std::min(kPiece, n - begin);
    for (std::size_t i = begin; i < begin + count; ++i) values[i] = logits[i] + suppress[i];
    const float most = Max(values + begin, count);
    if (most > choice.most) {
      choice.most = most;
      piece = begin;
    }
  }
  std::size_t at = piece;
  while (at < n && !(values[at] >= choice.most)) ++at;
  choice.at = at < n ? at : 0;
  return choice;
}

void Choose(const float* logits, const float* suppress, std::size_t n, std::int64_t* next,
            float* log_prob) {
  thread_local std::vector<float> memory;
  float* const values = Keep(memory, n);
  const Choice choice = LargestOf(logits, suppress, n, values);
  constexpr float kToBase2 = 1.44269504F;
  Partial sum{};
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    for (std::size_t j = 0; j < 16; ++j) {
      sum.values[j] += Exp2((values[i + j] - choice.most) * kToBase2);
    }
  }
  float total = sum.Sum();
  for (; i < n; ++i) total += Exp2((values[i] - choice.most) * kToBase2);
  *next = static_cast<std::int64_t>(choice.at);
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
