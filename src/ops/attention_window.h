// The soft window of handwriting synthesis (Graves 2013, eq. 46 to 51): K bumps that move forward
// over the symbols of a text and mark the symbols being written.
//
//   alpha_k = exp a^_k    beta_k = exp b^_k    kappa_k = before_k + exp k^_k
//   phi_u = sum over k of alpha_k exp(-beta_k (kappa_k - u)^2)      u = 1 .. U
//   w_c   = sum of phi_u over the u whose symbol is c
//
//   components (rows, 3 K) floating: a^, b^, k^, K of each   before (rows, K)
//   text (rows, U) i32: numbers of symbols, below `symbols`; a negative one is padding, phi is 0
//   outputs: w (rows, symbols), kappa (rows, K), phi (rows, U). A symbol number out of range
//   makes its row of w NaN.
// backward, with g_u = dw_(symbol u) + dphi_u, E_ku = exp(-beta_k (kappa_k - u)^2) and
// d = kappa_k - u:
//   da^_k = alpha_k sum_u g E      db^_k = -alpha_k beta_k sum_u g E d^2
//   dbefore_k = dkappa_k - 2 alpha_k beta_k sum_u g E d      dk^_k = exp(k^_k) dbefore_k
// errors: K or U below 1; inputs that do not fit each other.
#pragma once

#include "src/graph/graph.h"

namespace keel {

// Places of inputs and outputs. The backward has the inputs of the forward, with kappa in the place
// of `before`, and further ones, of which dw, dkappa and dphi may be absent.
struct AttentionWindowInput {
  enum Place : int { kComponents, kBefore, kText, kDw, kDkappa, kDphi };
  static constexpr int kKappa = kBefore;
};
struct AttentionWindowOutput {
  enum Place : int { kW, kKappa, kPhi };
};
struct AttentionWindowGradient {
  enum Place : int { kDcomponents, kDbefore };
};

struct AttentionWindowAttrs {
  std::int64_t symbols = 1;
  static constexpr auto fields() {
    return std::tuple{field("symbols", &AttentionWindowAttrs::symbols)};
  }
};

struct AttentionWindowSizes {
  std::int64_t rows, bumps, length;  // K bumps over U symbols
};
AttentionWindowSizes attention_window_sizes(const Shape& before, const Shape& text);

extern const OpInfo kAttentionWindow;
// (components, kappa, text, dw, dkappa, dphi) -> dcomponents, dbefore
extern const OpInfo kAttentionWindowBackward;

namespace ops {

struct AttentionWindow {
  Value w, kappa, phi;
};
AttentionWindow attention_window(Graph& g, Value components, Value before, Value text,
                                 std::int64_t symbols);

}  // namespace ops
}  // namespace keel
