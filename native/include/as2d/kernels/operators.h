// The project's own ONNX operators, domain "as2d", version 1.
#pragma once

#include <span>
#include <string_view>

struct OrtCustomOp;

namespace as2d {

/// All that the graphs of Whisper and of language models are made of. Every operator gives the same
/// numbers for a row whatever other rows are in the batch and however many threads share the work:
/// what is summed in parallel is integers, and floating-point work on a row is done by one piece of
/// code in one order. In the decoder that makes a verify step exact (see
/// TargetModel::even_rows_only). [1, R, K] is written for "R rows of K".
///
/// - LogMel(audio f32 [1,N], basis f32 [2,B/16,F/2,16], filters f32 [B,M]) -> f32 [1,N/hop,M];
///   attribute hop. Whisper's features: mel energies of frames of F samples around each hop-th one,
///   the audio mirrored at its ends, as log10, at most 8 below the largest, times 1/4, plus 1. The
///   basis is of half a spectrum of a frame folded upon itself (as2d_cli/catalog/graphs/mel.py).
/// - Linear(x f32 [1,R,K], weight i8 [N/16,K/4,16,4], scale f32 [N], bias f32 [N], gamma f32 [K],
///   beta f32 [K], residual f32 [1,R,N]; the last four optional) -> f32 [1,R,N]; attributes gelu,
///   taps, stride, all optional. weight[a,b,i,j] belongs to output 16a+i and input 4b+j, zero where
///   there is no such output; scale turns an output's integers into its weights. K is a multiple of
///   4. Rows are quantised to signed 8 bits, one scale a row (Dettmers et al. 2022, "vector-wise").
///   With gamma and beta, of their layer norm (epsilon 1e-5); with gelu = 1, GELU (erf) comes after
///   the bias; the residual is added last, and may have more rows. With taps = t, an odd number,
///   and stride = s, row r of the result is of rows r*s-(t-1)/2 and following of x, side by side,
///   zero beyond the ends: a convolution; K is then t times the width of x.
/// - FeedForward(x f32 [1,R,W], gamma, beta f32 [W], and weight, scale, bias twice) -> f32 [1,R,W]:
///   x + Linear(GELU(Linear(norm(x)))), bit for bit what the two Linear would give.
/// - Attention(query_key_value f32 [1,T,3W]) -> f32 [1,T,W]; attribute heads = h. All rows see all
///   rows. Keys and values have 8 bits as QuantizeCross makes them, queries 8 bits, one scale a
///   row, and attention weights 16 bits.
/// - QuantizeCross(key_value f32 [1,T,2W]) -> key u8 [h,P,d/4,16,4], key_scale f32 [h,d], value i8
///   [h,d/16,4P,16,4], value_scale f32 [h,d]; P = ceil(T/16); attribute heads. One scale a channel;
///   keys are stored with 128 added. d is a multiple of 16.
/// - SelfAttention(query_key_value f32 [1,R,3W], past_k, past_v f32 [S,h,C,d], places i32 [R,4])
///   -> f32 [1,R,W], present_k, present_v; attribute heads = h. S slots hold a context each. A line
///   of places is (slot, at, shared, begin), shared <= begin <= at < C: the row's key and value go
///   to position `at` of its slot, over whatever was there, and the row sees positions [0, shared)
///   and [begin, at] of the slot, other rows of this call included. R rows in a run after `past`
///   positions are (slot, past+r, 0, 0); a second run from the same past may lie anywhere behind
///   it, with shared = past and begin = its first position. A row's numbers depend on the sequence
///   of positions that it sees, not on where they lie. Two rows of a call may not have one place.
///   Bind present over past: they are only copied when they are different memory.
/// - CrossAttention(query f32 [1,R,W], those four with slots S in front of their dimensions, places
///   i32 [R,4]) -> f32 [1,R,W]; attributes heads and positions: T, or less where P is smaller
///   than T needs, 16P. Of places only the slot counts.
///   Queries and attention weights are taken at 16 bits, so that what is lost is lost in keys and
///   values alone.
/// - Choose(logits f32 [1,R,V], suppress f32 [V], choices i32 [R,6], temperatures f32 [R]; the last
///   two optional) -> next i64 [1,R], log_prob f32 [1,R]: the first largest of logits + suppress,
///   and its log-probability. A line of choices is (first, timestamps, low, high, score, seed):
///   text is [first, timestamps), and a row may also be a timestamp of [low, high), which it is if
///   all of those are likelier together than any text (Radford et al. 2022, the rule of their
///   decoder). The log-probability is that among what is left then. At a temperature t > 0 it is
///   the largest of logits / t + noise, where the noise is a function of seed and token: a sample
///   of the tempered distribution, and the same one whatever is computed beside it. Where score is
///   a token, a row is that token, with its log-probability among all, nothing suppressed.
/// Of language models:
/// - BlockLinear(x f32 [1,R,K], weight u8 [P,K/I,B], bias f32 [N], gamma f32 [K], residual f32
///   [1,R,N]; the last three optional) -> f32 [1,R,N]; attributes width = N, bits, gated, epsilon.
///   With bits = 4, I = 256 and B = 2368, and weights are those of GGUF's Q4_K; with bits = 6, B =
///   3392, and they are those of its Q6_K; with bits = 8, I = 64 and B = 1088, they are signed
///   bytes with a 16-bit floating-point scale for each 32 inputs (native/src/kernels/blocks-inl.h
///   says how they lie). Rows are quantised to signed 8 bits, one scale for each 32 numbers. With
///   gamma, of their RMS norm (epsilon in units of 1e-9). P is ceil(N/16), or with gated = 1 twice
///   that: of panels in turn, one is a gate g and the next one what it gates, v, and the result is
///   v*g/(1+exp(-g)).
/// - BlockRows(ids i64 [..], weight as above) -> f32 [..,K]: those outputs of the weight;
///   attributes width = K, bits.
/// - GroupedAttention(query_key f32 [1,R,(h+g)*d], value f32 [1,R,g*d], past_k, past_v f32
///   [S,g,C,d], places i32 [R,4], positions i64 [R], cosine, sine f32 [T,d/2]) -> f32 [1,R,h*d],
///   present_k, present_v; attributes heads = h, kv_heads = g. Like SelfAttention, where h/g query
///   heads share keys and values, and queries and keys are turned by the angles of their row's
///   position first: dimension i together with i+d/2.
inline constexpr char kOperatorDomain[] = "as2d";

/// Descriptions for CustomOpDomain_Add; they live as long as the process.
std::span<const OrtCustomOp* const> Operators();

/// Which instructions the kernels use here: "amx", "avx512vnni", "avx2", "neon-dotprod" or
/// "portable": the best that there are. The environment variable AS2D_KERNELS, read once, names the
/// best that may be used, so that they can be compared; another word in it is an Error when a graph
/// is loaded. Throws that Error.
std::string_view KernelName();

}  // namespace as2d
