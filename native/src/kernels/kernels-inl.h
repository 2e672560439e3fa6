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
// Those of them that stand for weights in blocks, which are SignedBySigned and Nibbles, also have
//   Dots: 16 sums for a block, with Begin(what they all begin with; of SignedBySigned only 0 unless
//   there is an offset), Add and Store. Nibbles: bytes from 0 to 63. Its Load unpacks [16][4] bytes
//   to their lower and their upper halves, and Raise<step> adds to bytes 16 times bits 2 * step and
//   2 * step + 1 of others.
// Lanes::kPanelRows: rows of BlockLinear at once.
// AS2D_KERNELS_TILES: defined where tiles-inl.h is to multiply.

#include "each.h"
#include "half.h"
#include "kernels.h"

// Each needs those before it.
// clang-format off
#include "math-inl.h"
#include "products-inl.h"
#include "linear-inl.h"
#include "blocks-inl.h"
#include "attention-inl.h"
#include "grouped-inl.h"
#include "mel-inl.h"
// clang-format on

namespace as2d::kernels {
namespace {

/// The first largest of some tokens, and the sum of exp(value - most) over them.
struct Likeliest {
  float most = -std::numeric_limits<float>::infinity();
  float total = 0;
  std::size_t best = 0;
  bool found = false;
};

/// Of [begin, end). Without `suppress` nothing is added to the logits.
Likeliest LikeliestOf(const float* logits, const float* suppress, std::size_t begin,
                      std::size_t end) {
  // In pieces that stay in the nearest cache; what has been summed up shrinks when there is a
  // larger one.
  constexpr std::size_t kPiece = 512;
  constexpr float kToBase2 = 1.44269504F;
  const auto value = [&](std::size_t i) {
    return suppress == nullptr ? logits[i] : logits[i] + suppress[i];
  };
  Likeliest all;
  std::size_t piece = end;  // that holds the largest, if there is a number at all
  for (; begin < end; begin += kPiece) {
    const std::size_t count = std::min(kPiece, end - begin);
    float values[kPiece];
    for (std::size_t i = 0; i < count; ++i) values[i] = value(begin + i);
    const float largest = Max(values, count);
    if (largest > all.most) {
      all.total *= Exp2((all.most - largest) * kToBase2);
      all.most = largest;
      piece = begin;
    }
    for (std::size_t i = 0; i < count; ++i) values[i] = Exp2((values[i] - all.most) * kToBase2);
    all.total += Sum(values, count);
  }
  while (piece < end && !(value(piece) >= all.most)) ++piece;
  all.found = piece < end;
  if (all.found) all.best = piece;
  return all;
}

/// Noise of the Gumbel distribution that depends on nothing but `seed` and `token`: the largest of
/// logits / temperature + noise is a sample of the tempered distribution (Maddison et al. 2014).
float Gumbel(std::uint32_t seed, std::uint32_t token) {
  // Two rounds of a 32-bit mixer (xor, shift, multiply) leave no bit of either untouched.
  std::uint32_t h = seed ^ (token * 0x9E3779B9U);
  for (int round = 0; round < 2; ++round) {
    h ^= h >> 16;
    h *= 0x7FEB352DU;
    h ^= h >> 15;
    h *= 0x846CA68BU;
    h ^= h >> 16;
  }
  const float uniform = (static_cast<float>(h >> 8) + 0.5F) * 0x1p-24F;
  return -std::log(-std::log(uniform));
}

void Choose(const float* logits, const float* suppress, std::size_t n, const Choice& choice,
            std::int64_t* next, float* log_prob) {
  if (choice.score < n) {
    const Likeliest all = LikeliestOf(logits, nullptr, 0, n);
    *next = static_cast<std::int64_t>(choice.score);
    *log_prob = logits[choice.score] - all.most - std::log(all.total);
    return;
  }
  Likeliest text = LikeliestOf(logits, suppress, choice.first, choice.timestamps);
  const Likeliest times = LikeliestOf(logits, suppress, choice.low, choice.high);
  // The rule of Whisper's decoder: a timestamp, if all of them are likelier together than any text.
  const bool timed = times.found && (!text.found || times.most + std::log(times.total) > text.most);
  if (timed) text = Likeliest();
  const float most = text.found && text.most > times.most ? text.most : times.most;
  float total = 0;
  if (text.found) total += text.total * std::exp(text.most - most);
  if (times.found) total += times.total * std::exp(times.most - most);
  std::size_t best = text.found && text.most >= times.most ? text.best : times.best;
  if (choice.temperature > 0 && (text.found || times.found)) {
    float largest = -std::numeric_limits<float>::infinity();
    const auto sample = [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        const float value = (logits[i] + suppress[i]) / choice.temperature +
                            Gumbel(choice.seed, static_cast<std::uint32_t>(i));
        if (value > largest) {
          largest = value;
          best = i;
        }
      }
    };
    if (text.found) sample(choice.first, choice.timestamps);
    if (times.found) sample(choice.low, choice.high);
  }
  *next = static_cast<std::int64_t>(best);
  *log_prob = logits[best] + suppress[best] - most - std::log(total);
}

constexpr Kernels kKernels = {
    .name = Lanes::kName,
    .quantize = Quantize,
    .norm_quantize = NormQuantize,
    .linear = Linear,
    .quantize_blocks = QuantizeBlocks,
    .block_linear = BlockLinear,
    .rotate = Rotate,
    .grouped_attention = GroupedAttention,
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
