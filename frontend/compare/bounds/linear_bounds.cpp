// Bounds of ops that move or choose elements, and of those that draw random numbers.
#include <algorithm>
#include <cmath>

#include "frontend/compare/bounds/node_bounds.h"
#include "frontend/compare/bounds/running_error.h"
#include "src/ops/dropout.h"
#include "src/ops/norm_noise.h"

namespace keel::compare {
namespace {

using Bounds = NodeBounds;

void exact(const ComparedNode&, Bounds&) {}

// The factor 1 / (1 - p) is rounded, and the product.
void dropout(const ComparedNode& n, Bounds& bounds) {
  for (std::size_t e = 0; e < bounds[0].as<double>().size(); ++e) {
    bounds[0].as<double>()[e] = 3 * kEps * std::abs(n.out(0)[e]) + kTiny;
  }
}

// A normal number is off by 29 eps (random_normal.h) and is multiplied by r_std; S = v + r_std n
// and M = m + r_mean u are sums of two rounded numbers, and S x + M another two roundings.
void norm_noise(const ComparedNode& n, Bounds& bounds) {
  const auto& a = n.attrs<NormNoiseAttrs>();
  const double s = 3 * (1 + a.n_std + 6 * a.r_std) + 29 * a.r_std, m = 5 * (a.n_mean + a.r_mean);
  const bool moves = n.node().op == &kNormNoise;
  const auto x = n.in(NormNoiseInput::kX), y = n.out(0);
  for (std::size_t e = 0; e < y.size(); ++e) {
    bounds[0].as<double>()[e] =
        kEps * (s * std::abs(x[e]) + (moves ? m : 0) + 2 * std::abs(y[e])) + kTiny;
  }
}

// As its header says.
void random_normal_numbers(const ComparedNode&, Bounds& bounds) {
  std::ranges::fill(bounds[0].as<double>(), 30 * kEps);
}

}  // namespace

void add_linear_rules(BoundRules& rules) {
  for (auto name : {"max", "max_backward", "broadcast_to", "reshape", "transpose", "slice", "split",
                    "concat", "pad", "max_pool2d", "embedding", "stop_gradient",
                    "classification_errors", "top_k", "scatter", "group_ids"}) {
    rules[name] = exact;
  }
  rules["dropout"] = rules["dropout_backward"] = dropout;
  rules["norm_noise"] = rules["norm_noise_backward"] = norm_noise;
  rules["random_normal"] = random_normal_numbers;
}

}  // namespace keel::compare
