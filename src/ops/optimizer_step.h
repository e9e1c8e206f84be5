// Optimizer updates of one parameter, and the sums that gradient clipping needs.
//
// With g' = scale * g (scale () or absent = 1; from clipping and accumulation):
//   sgd_step   g' += wd p;  u <- momentum u + g';  p <- p - lr u   (nesterov: p - lr (g' + momentum
//   u))
//              inputs p, g, lr (), scale or absent, u or absent;      outputs p, u (absent: (0))
//   adam_step  m <- b1 m + (1-b1) g';  v <- b2 v + (1-b2) g'^2
//              p <- p - lr (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)
//              with t = step + 1. Weight decay wd: added to g' (Adam, Kingma & Ba 2015) or, when
//              `decoupled`, p <- (1 - lr wd) p first (AdamW, Loshchilov & Hutter 2019).
//              inputs p, g, lr (), scale or absent, step () i32, m, v;      outputs p, m, v
// A scale that is not finite leaves p and the moments unchanged: a diverged step destroys nothing.
// in place: every output over its own input.
//
//   sum_squares  y () = sum of x^2 over all elements, added up in double over fixed blocks.
#pragma once

#include "src/graph/graph.h"

namespace keel {

struct SgdAttrs {
  double momentum = 0, weight_decay = 0;
  bool nesterov = false;
  static constexpr auto fields() {
    return std::tuple{field("momentum", &SgdAttrs::momentum),
                      field("weight_decay", &SgdAttrs::weight_decay),
                      field("nesterov", &SgdAttrs::nesterov)};
  }
};

struct AdamAttrs {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool decoupled = false;
  static constexpr auto fields() {
    return std::tuple{field("beta1", &AdamAttrs::beta1), field("beta2", &AdamAttrs::beta2),
                      field("eps", &AdamAttrs::eps),
                      field("weight_decay", &AdamAttrs::weight_decay),
                      field("decoupled", &AdamAttrs::decoupled)};
  }
};

extern const OpInfo kSgdStep, kAdamStep, kSumSquares;

namespace ops {

struct SgdInputs {
  Value p, g, lr, scale, u;
};
// Returns p'; the velocity is output 1.
Value sgd_step(Graph& g, const SgdInputs& in, const SgdAttrs& attrs);

struct AdamInputs {
  Value p, g, lr, scale, step, m, v;
};
// Returns p'; m' and v' are outputs 1 and 2.
Value adam_step(Graph& g, const AdamInputs& in, const AdamAttrs& attrs);

Value sum_squares(Graph& g, Value x);

}  // namespace ops
}  // namespace keel
