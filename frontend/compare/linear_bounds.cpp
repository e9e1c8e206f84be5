// Bounds of ops that move elements, add them up, or multiply and add them up.
#include <algorithm>
#include <cmath>

#include "frontend/compare/node_bounds.h"
#include "frontend/compare/running_error.h"
#include "src/ops/conv2d.h"
#include "src/ops/dropout.h"
#include "src/ops/embedding.h"
#include "src/ops/lookup_sum.h"
#include "src/ops/matmul.h"
#include "src/ops/norm_noise.h"
#include "src/ops/order_error.h"
#include "src/ops/pool2d.h"
#include "src/runtime/run_node.h"

namespace keel::compare {
namespace {

using Bounds = std::vector<Tensor>;

Tensor sizes_of(const Tensor& x) {
  Tensor result = x.clone();
  if (x.dtype() == DType::kF64) {
    for (double& v : result.as<double>()) v = std::abs(v);
  }
  return result;
}

// The outputs of the judge for the sizes of all floating inputs: of an op that is linear in each of
// them, with coefficients that are not negative, the sums of the sizes of its terms.
std::vector<Tensor> condition_sums(const JudgedNode& n) {
  std::vector<Tensor> sizes;
  std::vector<const Tensor*> inputs;
  sizes.reserve(n.inputs.size());
  for (const Tensor* x : n.inputs) {
    inputs.push_back(x == nullptr ? nullptr : &sizes.emplace_back(sizes_of(*x)));
  }
  return run_node(n.judge, n.graph, n.index, inputs).outputs;
}

// Sums of k terms each, in output 0; the others are exact.
void bound_sums(const JudgedNode& n, Bounds& bounds, std::int64_t k) {
  const std::vector<Tensor> sums = condition_sums(n);
  const double factor = sum_error(k);
  const auto sizes = sums[0].as<double>();
  const auto bound = bounds[0].as<double>();
  for (std::size_t e = 0; e < bound.size(); ++e) bound[e] = factor * sizes[e] + kTiny;
}

void exact(const JudgedNode&, Bounds&) {}

void matmul(const JudgedNode& n, Bounds& bounds) {
  const MatmulSizes sizes = matmul_sizes(n.input(MatmulInput::kA).shape(),
                                         n.input(MatmulInput::kB).shape(), n.attrs<MatmulAttrs>());
  bound_sums(n, bounds, sizes.k + 1);
}

void conv2d(const JudgedNode& n, Bounds& bounds) {
  const Shape& weight = n.input(ConvInput::kWeight).shape();
  bound_sums(n, bounds, weight.elements(1, 4) + 1);
}

void conv2d_input(const JudgedNode& n, Bounds& bounds) {
  const Shape& weight = n.input(ConvDxInput::kWeight).shape();
  bound_sums(n, bounds, weight[0] * weight.elements(2, 4));
}

void conv2d_weight(const JudgedNode& n, Bounds& bounds) {
  const Shape& dy = n.input(ConvDweightInput::kDy).shape();
  const bool last = n.attrs<ConvBackwardAttrs>().channels_last;
  bound_sums(n, bounds, last ? dy.elements(0, 3) : dy[0] * dy.elements(2, 4));
}

// Sums, means and sums of squares are added up in double, in any order, and rounded once, as
// tests/backends/reduce_test.cpp and the header of sum_squares have it.
void reduction(const JudgedNode& n, Bounds& bounds) {
  const double count = double(n.input(0).elements() + 2);
  const std::vector<Tensor> sums = condition_sums(n);
  for (std::size_t e = 0; e < n.out(0).size(); ++e) {
    bounds[0].as<double>()[e] =
        kEps * std::abs(n.out(0)[e]) + count * 0x1p-53 * sums[0].as<double>()[e] + kTiny;
  }
}

// As many terms as the id that occurs most.
void embedding_backward(const JudgedNode& n, Bounds& bounds) {
  const auto& attrs = n.attrs<EmbeddingBackwardAttrs>();
  std::vector<std::int64_t> counts(std::size_t(attrs.vocabulary), 0);
  for (std::int32_t id : n.input(EmbeddingBackwardInput::kIds).as<std::int32_t>()) {
    if (id >= 0 && id < attrs.vocabulary) ++counts[std::size_t(id)];
  }
  bound_sums(n, bounds, counts.empty() ? 0 : *std::ranges::max_element(counts));
}

// As many terms as there are places.
void lookup_sum(const JudgedNode& n, Bounds& bounds) {
  bound_sums(n, bounds, n.input(LookupSumInput::kTables).shape()[0]);
}

// Squares of differences: two roundings of the difference's square, and one of the square.
void order_error(const JudgedNode& n, Bounds& bounds) {
  const std::int64_t width = n.input(OrderErrorInput::kX).shape()[1];
  const double factor = sum_error(width) + 3 * kEps;
  for (std::size_t e = 0; e < n.out(0).size(); ++e) {
    bounds[0].as<double>()[e] = factor * n.out(0)[e] + double(width + 1) * kTiny;
  }
}

// Sums of products with rounded differences, one for each point of the other side.
void order_error_backward(const JudgedNode& n, Bounds& bounds) {
  using In = OrderErrorInput;
  const Tensor de = sizes_of(n.input(In::kDe));
  const std::vector<const Tensor*> inputs{&n.input(In::kX), &n.input(In::kY), &de};
  const std::vector<Tensor> sums = run_node(n.judge, n.graph, n.index, inputs).outputs;
  const Shape& pairs = de.shape();
  for (int side : {OrderErrorOutput::kDx, OrderErrorOutput::kDy}) {
    const double factor = sum_error(pairs[1 - side]) + kEps;
    const auto sizes = sums[std::size_t(side)].as<double>();
    const auto bound = bounds[std::size_t(side)].as<double>();
    for (std::size_t e = 0; e < bound.size(); ++e) {
      bound[e] = factor * std::abs(sizes[e]) + double(pairs[1 - side] + 1) * kTiny;
    }
  }
}

void avg_pool(const JudgedNode& n, Bounds& bounds) {
  const std::int64_t window = n.attrs<PoolAttrs>().window;
  bound_sums(n, bounds, window * window + 1);
}

// An element lies in so many windows along each axis.
void pool_backward(const JudgedNode& n, Bounds& bounds) {
  const auto& attrs = n.attrs<PoolBackwardAttrs>();
  const std::int64_t windows = (attrs.window + attrs.stride - 1) / attrs.stride;
  bound_sums(n, bounds, windows * windows + 1);
}

// The factor 1 / (1 - p) is rounded, and the product.
void dropout(const JudgedNode& n, Bounds& bounds) {
  for (std::size_t e = 0; e < bounds[0].as<double>().size(); ++e) {
    bounds[0].as<double>()[e] = 3 * kEps * std::abs(n.out(0)[e]) + kTiny;
  }
}

// A normal number is off by 29 eps (random_normal.h) and is multiplied by r_std; S = v + r_std n
// and M = m + r_mean u are sums of two rounded numbers, and S x + M another two roundings.
void norm_noise(const JudgedNode& n, Bounds& bounds) {
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
void random_normal_numbers(const JudgedNode&, Bounds& bounds) {
  std::ranges::fill(bounds[0].as<double>(), 30 * kEps);
}

}  // namespace

void add_linear_rules(BoundRules& rules) {
  for (auto name : {"max", "max_backward", "broadcast_to", "reshape", "transpose", "slice", "split",
                    "concat", "pad", "max_pool2d", "embedding", "stop_gradient",
                    "classification_errors", "top_k", "put"}) {
    rules[name] = exact;
  }
  for (auto name : {"sum", "mean", "sum_squares"}) rules[name] = reduction;
  rules["matmul"] = matmul;
  rules["conv2d"] = conv2d;
  rules["conv2d_backward_input"] = conv2d_input;
  rules["conv2d_backward_weight"] = conv2d_weight;
  rules["embedding_backward"] = embedding_backward;
  rules["lookup_sum"] = lookup_sum;
  rules["order_error"] = order_error;
  rules["order_error_backward"] = order_error_backward;
  rules["avg_pool2d"] = avg_pool;
  rules["avg_pool2d_backward"] = rules["max_pool2d_backward"] = pool_backward;
  rules["dropout"] = rules["dropout_backward"] = dropout;
  rules["norm_noise"] = rules["norm_noise_backward"] = norm_noise;
  rules["random_normal"] = random_normal_numbers;
}

}  // namespace keel::compare
