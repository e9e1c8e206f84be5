// Multi-linear attention with one core (Ma et al. 2019, "A Tensorized Transformer for Language
// Modeling", eqs. 6 and 7), for each sequence of n positions and of rank r:
//     T_ijk = sum over r of (a_ir k_jr + c_ir p_jr) v_kr        i, j, k = 0 .. n - 1
//     y_i = sum over j, k of T_ijk out_{j n + k}
//
//   a, c (b, n, r)  the queries that meet keys and positions, multiplied by the core
//   k, v (b, n, r)   p (n, r)   out (n n, d)   floating;   y (b, n, d)
//   causal: T_ijk is 0 unless j <= i and k <= i. Without it, y_i depends on all positions of its
//     sequence, so a language model reads the words that it has to predict.
// backward (Exact), with G_i,jk = <out_{j n + k}, dy_i> where T_ijk is not masked, M_ijr = sum over
// k of G_ijk v_kr, and H_ijr = a_ir k_jr + c_ir p_jr:
//     da_ir = sum_j M_ijr k_jr    dc_ir = sum_j M_ijr p_jr    dk_jr = sum_i a_ir M_ijr
//     dv_kr = sum_ij G_ijk H_ijr    dp_jr = sum over b, i of c_ir M_ijr
//     dout_{j n + k} = sum over b, i of T_ijk dy_i
// A CPU holds T or G of eight positions of a sequence at the most, CUDA T and H of as many
// sequences as 16 MiB hold, or of one.
// The bits of y depend neither on other sequences nor, if causal, on later positions.
// errors: ranks, types and sizes that do not fit; sizes of 0 but for b.
// in place: none.
#pragma once

#include "src/graph/graph.h"

namespace keel {

// Inputs and outputs have these places. The backward has the inputs of the forward, and dy.
struct MultilinearInput {
  enum Place : int { kA, kC, kK, kP, kV, kOut, kDy };
};
struct MultilinearGradient {
  enum Place : int { kDa, kDc, kDk, kDp, kDv, kDout };
};

struct MultilinearAttrs {
  bool causal = true;
  static constexpr auto fields() { return std::tuple{field("causal", &MultilinearAttrs::causal)}; }
};

struct MultilinearSizes {
  std::int64_t batch, positions, rank, features;

  // The number of pairs (j, k) of keys and values.
  constexpr std::int64_t pairs() const { return positions * positions; }
};
MultilinearSizes multilinear_sizes(const Shape& a, const Shape& out);

extern const OpInfo kMultilinearAttention, kMultilinearAttentionBackward;

namespace ops {

struct MultilinearOperands {
  Value a, c, k, p, v, out;
};
Value multilinear_attention(Graph& g, const MultilinearOperands& operands,
                            const MultilinearAttrs& attrs = {});

}  // namespace ops
}  // namespace keel
