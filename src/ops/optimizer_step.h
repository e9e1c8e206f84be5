// Optimizer updates of one parameter, and the sums that gradient clipping needs. Every update has
// the inputs p, g like p, lr () and scale () or absent, then its own, then ids if g holds rows of a
// table's gradient. r = lr * lr_scale and g' = scale * g, where scale comes from clipping (absent:
// 1). The outputs are the new p and the new values of the update's own states, each like p.
//
//   sgd_step      u or absent.  g' += wd p;  u <- momentum u + g';  p <- p - r u   (nesterov: p - r
//                 (g' + momentum u)). Without u there is no u': its shape is (0).
//   adam_step     step () i32, m, v.  m <- b1 m + (1-b1) g';  v <- b2 v + (1-b2) g'^2;
//                 p <- p - r (m / c1) / (sqrt(v / c2) + eps),  c1 = 1 - b1^t, c2 = 1 - b2^t,
//                 t = step + 1 (Kingma & Ba 2015).
//                 raw_eps: p <- p - r (sqrt(c2) / c1) m / (sqrt(v) + eps), as fairseq has it.
//                 release_bias: c1 = 1 - (1-b1)^t and c2 = 1 - (1-b2)^t, a slip of the releases of
//                 skip-thoughts and order embeddings that leaves nearly all of the bias.
//                 Weight decay wd is added to g' as wd p or, when `decoupled`, p <- (1 - r wd) p
//                 comes first (Loshchilov & Hutter 2019).
//   adagrad_step  h.  g' += wd p;  h <- h + g'^2;  p <- p - r g' / sqrt(h + eps)
//                 (Duchi et al. 2011, as Chen & Manning 2014 have it).
//   rmsprop_step   n, q, d.  g' += wd p;  n <- keep n + (1-keep) g'^2;  q <- keep q + (1-keep) g';
//                 d <- momentum d - r g' / sqrt(max(n - q^2, 0) + eps);  p <- p + d
//                 (RMSProp of Graves 2013, eq. 38 to 41; n - q^2, a variance, is below 0 only by
//                 rounding).
// If scale is not finite, p and the states stay unchanged: a diverged step destroys nothing.
//
// Rows: if ids (n) i32 is given, p is a table (V, width) and g are rows of its gradient (n, width),
// as in src/ops/row_gradient.h: row ids[j] of the gradient is g[j], and every other row is 0.
// Results equal those of the whole gradient to the bit if p, lr and states are finite and the scale
// is not negative. Adam, Graves, sgd with u and every update with weight decay change all rows:
// moments fade, weights decay. Sgd without u and adagrad, both without weight decay, neither change
// nor touch rows without a gradient. `lazy`, which needs ids, is another rule: under every update,
// rows without a gradient keep their values and states.
// errors: an attribute out of its range; an input like p of another type; lazy without ids.
// in place: every output over its own input.
//
//   sum_squares  y () = sum of x^2 over all elements, added up in double over fixed blocks. With
//                ids, x holds rows of a table's gradient as above, and y is the sum over the whole
//                gradient, to the bit. errors: with ids, x is not (n, width).
//   total_norm   squares () ...  y () = sqrt(sum of all inputs), added up in double in their order:
//                the norm of several tensors from their sums of squares. errors: no input, or one
//                that is no scalar of the first one's type.
#pragma once

#include "src/graph/graph.h"

namespace keel {

struct SgdAttrs {
  double momentum = 0, weight_decay = 0;
  bool nesterov = false;
  double lr_scale = 1;
  bool lazy = false;
  static constexpr auto fields() {
    using A = SgdAttrs;
    return std::tuple{field("momentum", &A::momentum), field("weight_decay", &A::weight_decay),
                      field("nesterov", &A::nesterov), field("lr_scale", &A::lr_scale),
                      field("lazy", &A::lazy)};
  }
};

struct AdamAttrs {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool decoupled = false, raw_eps = false, release_bias = false;
  double lr_scale = 1;
  bool lazy = false;
  static constexpr auto fields() {
    using A = AdamAttrs;
    return std::tuple{field("beta1", &A::beta1),
                      field("beta2", &A::beta2),
                      field("eps", &A::eps),
                      field("weight_decay", &A::weight_decay),
                      field("decoupled", &A::decoupled),
                      field("raw_eps", &A::raw_eps),
                      field("release_bias", &A::release_bias),
                      field("lr_scale", &A::lr_scale),
                      field("lazy", &A::lazy)};
  }
};

struct AdagradAttrs {
  double eps = 1e-6, weight_decay = 0, lr_scale = 1;
  bool lazy = false;
  static constexpr auto fields() {
    using A = AdagradAttrs;
    return std::tuple{field("eps", &A::eps), field("weight_decay", &A::weight_decay),
                      field("lr_scale", &A::lr_scale), field("lazy", &A::lazy)};
  }
};

struct GravesAttrs {
  double keep = 0.95, momentum = 0.9, eps = 1e-4, weight_decay = 0, lr_scale = 1;
  bool lazy = false;
  static constexpr auto fields() {
    using A = GravesAttrs;
    return std::tuple{field("keep", &A::keep),         field("momentum", &A::momentum),
                      field("eps", &A::eps),           field("weight_decay", &A::weight_decay),
                      field("lr_scale", &A::lr_scale), field("lazy", &A::lazy)};
  }
};

struct SumSquaresAttrs {
  std::int64_t vocabulary = 0;  // rows of the table, where ids are given
  static constexpr auto fields() {
    return std::tuple{field("vocabulary", &SumSquaresAttrs::vocabulary)};
  }
};

// Whether an update by rows leaves rows without a gradient unchanged. has_u: sgd with momentum.
inline bool spares_rows(const SgdAttrs& a, bool has_u) {
  return a.lazy || (a.weight_decay == 0 && !has_u);
}
inline bool spares_rows(const AdagradAttrs& a) { return a.lazy || a.weight_decay == 0; }
inline bool spares_rows(const AdamAttrs& a) { return a.lazy; }
inline bool spares_rows(const GravesAttrs& a) { return a.lazy; }

// Places of inputs and outputs: first those of every update, then an update's own.
struct UpdateInput {
  enum Place : int { kP, kG, kLr, kScale, kOwn };
};
struct UpdateOutput {
  enum Place : int { kP, kOwn };
};
struct SgdInput : UpdateInput {
  enum Place : int { kU = kOwn, kIds };
};
struct SgdOutput : UpdateOutput {
  enum Place : int { kU = kOwn };
};
struct AdamInput : UpdateInput {
  enum Place : int { kStep = kOwn, kM, kV, kIds };
};
struct AdamOutput : UpdateOutput {
  enum Place : int { kM = kOwn, kV };
};
struct AdagradInput : UpdateInput {
  enum Place : int { kH = kOwn, kIds };
};
struct AdagradOutput : UpdateOutput {
  enum Place : int { kH = kOwn };
};
struct RmspropInput : UpdateInput {
  enum Place : int { kN = kOwn, kQ, kD, kIds };
};
struct RmspropOutput : UpdateOutput {
  enum Place : int { kN = kOwn, kQ, kD };
};

struct SumSquaresInput {
  enum Place : int { kX, kIds };
};

extern const OpInfo kSgdStep, kAdamStep, kAdagradStep, kRmspropStep, kSumSquares, kTotalNorm;

namespace ops {

// Every update returns p'; the new states are further outputs of the node.
struct SgdOperands {
  Value p, g, lr, scale, u, ids = {};
};
Value sgd_step(Graph& g, const SgdOperands& in, const SgdAttrs& attrs);

struct AdamOperands {
  Value p, g, lr, scale, step, m, v, ids = {};
};
Value adam_step(Graph& g, const AdamOperands& in, const AdamAttrs& attrs);

struct AdagradOperands {
  Value p, g, lr, scale, h, ids = {};
};
Value adagrad_step(Graph& g, const AdagradOperands& in, const AdagradAttrs& attrs);

struct GravesOperands {
  Value p, g, lr, scale, n, q, d, ids = {};
};
Value rmsprop_step(Graph& g, const GravesOperands& in, const GravesAttrs& attrs);

Value sum_squares(Graph& g, Value x);
// The sum of squares of a table's gradient that is given as rows.
Value sum_squares(Graph& g, Value rows, Value ids, std::int64_t vocabulary);
Value total_norm(Graph& g, const std::vector<Value>& squares);

}  // namespace ops
}  // namespace keel
