// The project's own ONNX operators, domain "as2d", version 1.
#pragma once

#include <span>
#include <string_view>

struct OrtCustomOp;

namespace as2d {

/// The decoder's operators. Every one gives the same numbers for a row whatever other rows are in
/// the batch and however many threads share the work: what is summed in parallel is integers, and
/// floating-point work on a row is done by one piece of code in one order. That makes a verify step
/// exact (see TargetModel::even_rows_only). [1, R, K] is written for "R rows of K".
///
/// - Linear(x f32 [1,R,K], weight i8 [N/16,K/4,16,4], scale f32 [N], bias f32 [N] optional)
///   -> f32 [1,R,N]. weight[a,b,i,j] belongs to output 16a+i and input 4b+j, zero where there is no
///   such output; scale turns an output's integers into its weights. K is a multiple of 4. Rows are
///   quantised to signed 8 bits, one scale a row (Dettmers et al. 2022, "vector-wise").
/// - SelfAttention(query_key_value f32 [1,R,3W], past_k, past_v f32 [S,h,C,d], places i32 [R,4])
///   -> f32 [1,R,W], present_k, present_v; attribute heads = h. S slots hold a context each. A line
///   of places is (slot, at, shared, begin), shared <= begin <= at < C: the row's key and value go
///   to position `at` of its slot, over whatever was there, and the row sees positions [0, shared)
///   and [begin, at] of the slot, other rows of this call included. R rows in a run after `past`
///   positions are (slot, past+r, 0, 0); a second run from the same past may lie anywhere behind
///   it, with shared = past and begin = its first position. A row's numbers depend on the sequence
///   of positions that it sees, not on where they lie. Two rows of a call may not have one place.
///   Bind present over past: they are only copied when they are different memory.
/// - QuantizeCross(key f32 [1,T,W], value f32 [1,T,W]) -> key u8 [h,P,d/4,16,4], key_scale f32
///   [h,d], value i8 [h,d/16,4P,16,4], value_scale f32 [h,d]; P = ceil(T/16); attribute heads. One
///   scale a channel; keys are stored with 128 added. d is a multiple of 16.
/// - CrossAttention(query f32 [1,R,W], those four with slots S in front of their dimensions, places
///   i32 [R,4]) -> f32 [1,R,W]; attributes heads and positions = T. Of places only the slot counts.
///   Queries and attention weights are taken at 16 bits, so that what is lost is lost in keys and
///   values alone.
/// - Choose(logits f32 [1,R,V], suppress f32 [V]) -> next i64 [1,R], log_prob f32 [1,R]: the first
///   largest of logits + suppress, and its log-probability.
inline constexpr char kOperatorDomain[] = "as2d";

/// Descriptions for CustomOpDomain_Add; they live as long as the process.
std::span<const OrtCustomOp* const> Operators();

/// Which instructions the kernels use here: "avx512vnni", "avx2", "neon-dotprod" or "portable".
std::string_view KernelName();

}  // namespace as2d
