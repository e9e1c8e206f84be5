// Bounds of ops that add elements up, or multiply and add them up.
#include <algorithm>
#include <array>
#include <cmath>

#include "frontend/compare/bounds/node_bounds.h"
#include "frontend/compare/bounds/running_error.h"
#include "src/ops/conv2d.h"
#include "src/ops/embedding.h"
#include "src/ops/embedding_bag.h"
#include "src/ops/matmul.h"
#include "src/ops/order_violation.h"
#include "src/ops/pool2d.h"
#include "src/ops/row_gradient.h"
#include "src/runtime/run_node.h"

namespace keel::compare {
namespace {

using Bounds = NodeBounds;

// A copy with f(x) for every number x.
template <class F>
Tensor mapped(const Tensor& x, const F& f) {
  Tensor result = x.clone();
  if (x.dtype() == DType::kF64) {
    for (double& v : result.as<double>()) v = f(v);
  }
  return result;
}
double size_of_number(double v) { return std::abs(v); }

// The outputs of the reference for f of every floating input.
template <class F>
std::vector<Tensor> judged_of(const ComparedNode& n, const F& f) {
  std::vector<Tensor> values;
  std::vector<const Tensor*> inputs;
  values.reserve(n.inputs.size());
  for (const Tensor* x : n.inputs) {
    inputs.push_back(x == nullptr ? nullptr : &values.emplace_back(mapped(*x, f)));
  }
  return run_node(n.reference, n.graph, n.index, inputs).outputs;
}

// For the sizes of all floating inputs: of an op that is linear in each of them, with coefficients
// that are not negative, the sums of the sizes of its terms.
std::vector<Tensor> condition_sums(const ComparedNode& n) { return judged_of(n, size_of_number); }

bool has_subnormals(const ComparedNode& n) {
  return std::ranges::any_of(n.inputs, [](const Tensor* x) {
    return x != nullptr && x->dtype() == DType::kF64 &&
           std::ranges::any_of(x->as<double>(),
                               [](double v) { return v != 0 && std::abs(v) < kTiny; });
  });
}

// The amount that an op linear in its inputs may lose when subnormal inputs are treated as 0.
void add_flushed_inputs(const ComparedNode& n, std::span<const double> sizes, Tensor& bound) {
  if (!has_subnormals(n)) return;
  const std::vector<Tensor> kept =
      judged_of(n, [](double v) { return std::abs(v) < kTiny ? 0 : std::abs(v); });
  for (std::size_t e = 0; e < sizes.size(); ++e) {
    bound.as<double>()[e] += sizes[e] - kept[0].as<double>()[e];
  }
}

// How kernels of any program form output 0: count(e) terms for element e, each multiplied by
// `coefficient` in the sizes that the reference gives, and what comes after the sum.
template <class Count>
struct AnySums {
  Count count;
  double coefficient = 1;
  bool is_activated = false;  // the output is not the sum itself
};
template <class Count>
AnySums(Count) -> AnySums<Count>;
template <class Count>
AnySums(Count, double) -> AnySums<Count>;
template <class Count>
AnySums(Count, double, bool) -> AnySums<Count>;

template <class Count>
void bound_any_sums(const ComparedNode& n, Bounds& bounds, const AnySums<Count>& sums) {
  const std::vector<Tensor> sizes = condition_sums(n);
  const std::vector<Tensor> squares = judged_of(n, [](double v) { return v * v; });
  bounds.usual.emplace_back(DType::kF64, n.outputs[0].shape());
  bounds.deviation.emplace_back(DType::kF64, n.outputs[0].shape());
  for (std::size_t e = 0; e < n.out(0).size(); ++e) {
    const double size = sizes[0].as<double>()[e];
    const SumError error = any_sum_error({.count = double(sums.count(e)),
                                          .sizes = size,
                                          .squares = sums.coefficient * squares[0].as<double>()[e],
                                          .total = sums.is_activated ? size : n.out(0)[e]});
    bounds[0].as<double>()[e] = error.largest;
    bounds.usual[0].as<double>()[e] = error.usual;
    bounds.deviation[0].as<double>()[e] = error.deviation;
  }
  add_flushed_inputs(n, sizes[0].as<double>(), bounds[0]);
  add_flushed_inputs(n, sizes[0].as<double>(), bounds.usual[0]);
}

// Products of two bf16 numbers are exact in float32, so that sums have the same bounds; but the
// instructions for them take subnormal factors as 0.
bool has_narrow_factors(const ComparedNode& n) {
  return n.graph.type(n.node().inputs[0]).dtype == DType::kBF16;
}

auto always(std::int64_t k) {
  return [k](std::size_t) { return k; };
}

// Sums of k terms each, in output 0; the others are exact.
void bound_sums(const ComparedNode& n, Bounds& bounds, std::int64_t k) {
  if (n.is_external()) return bound_any_sums(n, bounds, AnySums{always(k)});
  const std::vector<Tensor> sums = condition_sums(n);
  const double factor = sum_error(k);
  const auto sizes = sums[0].as<double>();
  const auto bound = bounds[0].as<double>();
  for (std::size_t e = 0; e < bound.size(); ++e) {
    bound[e] = factor * sizes[e] + double(k + 1) * kTiny;
  }
  if (has_narrow_factors(n)) add_flushed_inputs(n, sizes, bounds[0]);
}

void matmul(const ComparedNode& n, Bounds& bounds) {
  const auto& attrs = n.attrs<MatmulAttrs>();
  const MatmulSizes sizes =
      matmul_sizes(n.input(MatmulInput::kA).shape(), n.input(MatmulInput::kB).shape(), attrs);
  if (!n.is_external()) return bound_sums(n, bounds, sizes.k + 1);
  bound_any_sums(n, bounds, AnySums{always(sizes.k + 1), 1, attrs.activation != Activation::kNone});
}

// The largest size within `reach` places of each element along the axes `height` and `width`.
Tensor dilated(const Tensor& x, int height, int width) {
  constexpr std::int64_t kReach = 5;
  Tensor result = mapped(x, size_of_number);
  for (const int axis : {height, width}) {
    const Tensor from = result.clone();
    const std::int64_t stride = x.shape().strides()[std::size_t(axis)], size = x.shape()[axis];
    for (std::int64_t e = 0; e < x.elements(); ++e) {
      const std::int64_t at = e / stride % size;
      double largest = 0;
      for (std::int64_t i = std::max<std::int64_t>(at - kReach, 0);
           i <= std::min(at + kReach, size - 1); ++i) {
        largest = std::max(largest, from.as<double>()[std::size_t(e + (i - at) * stride)]);
      }
      result.as<double>()[std::size_t(e)] = largest;
    }
  }
  return result;
}

// A convolution that may be computed by tiles: sums of `count` terms, of inputs of which those
// numbered in `images` have two axes that the tiles cut.
struct Tiles {
  std::span<const int> images;
  bool channels_last = false;
  std::int64_t count = 0;
};

// Tiles save work where windows of three places or more overlap, one place apart.
bool may_be_tiled(const Shape& weight, std::int64_t stride) {
  return stride == 1 && std::max(weight[2], weight[3]) >= 3;
}

// The sizes of the terms of each sum if every element were the largest of its tile.
Tensor mixed_sizes(const ComparedNode& n, const Tiles& tiles) {
  const int height = tiles.channels_last ? 1 : 2;
  std::vector<Tensor> sizes;
  std::vector<const Tensor*> inputs;
  sizes.reserve(n.inputs.size());
  for (int i = 0; i < int(n.inputs.size()); ++i) {
    const bool is_image = std::ranges::find(tiles.images, i) != tiles.images.end();
    inputs.push_back(!n.has(i)  ? nullptr
                     : is_image ? &sizes.emplace_back(dilated(n.input(i), height, height + 1))
                                : &sizes.emplace_back(mapped(n.input(i), size_of_number)));
  }
  return std::move(run_node(n.reference, n.graph, n.index, inputs).outputs[0]);
}

// A convolution by tiles (Winograd's, or by Fourier transforms) mixes the elements of a tile before
// it multiplies them: an element may be off by what is large elsewhere in its tile. Such a result
// is within `largest` but beyond `usual`, which stays that of a direct sum. Ten stands for the
// constants of the transforms. The rule with root mean squares is no bound here: those of the
// transformed terms are not known (docs/judge.md).
void allow_tiles(const ComparedNode& n, Bounds& bounds, const Tiles& tiles) {
  constexpr double kTileFactor = 10;
  const Tensor mixed = mixed_sizes(n, tiles);
  const auto bound = bounds[0].as<double>();
  for (std::size_t e = 0; e < bound.size(); ++e) {
    const double size = mixed.as<double>()[e];
    const SumTerms terms{
        .count = double(tiles.count), .sizes = size, .squares = size * size, .total = size};
    bound[e] = std::max(bound[e], kTileFactor * any_sum_error(terms).largest);
  }
}

void conv2d(const ComparedNode& n, Bounds& bounds) {
  const Shape& weight = n.input(ConvInput::kWeight).shape();
  const auto& attrs = n.attrs<ConvAttrs>();
  const std::int64_t terms = weight.elements(1, 4) + 1;
  if (!n.is_external()) return bound_sums(n, bounds, terms);
  bound_any_sums(n, bounds, AnySums{always(terms), 1, attrs.activation != Activation::kNone});
  if (!may_be_tiled(weight, attrs.stride)) return;
  allow_tiles(n, bounds, {std::array{int(ConvInput::kX)}, attrs.channels_last, terms});
}

void conv2d_input(const ComparedNode& n, Bounds& bounds) {
  const Shape& weight = n.input(ConvDxInput::kWeight).shape();
  const auto& attrs = n.attrs<ConvBackwardAttrs>();
  const std::int64_t terms = weight[0] * weight.elements(2, 4);
  bound_sums(n, bounds, terms);
  if (!n.is_external() || !may_be_tiled(weight, attrs.stride)) return;
  allow_tiles(n, bounds, {std::array{int(ConvDxInput::kDy)}, attrs.channels_last, terms});
}

void conv2d_weight(const ComparedNode& n, Bounds& bounds) {
  const Shape& dy = n.input(ConvDweightInput::kDy).shape();
  const auto& attrs = n.attrs<ConvBackwardAttrs>();
  const std::int64_t terms = attrs.channels_last ? dy.elements(0, 3) : dy[0] * dy.elements(2, 4);
  bound_sums(n, bounds, terms);
  if (!n.is_external() || !may_be_tiled(attrs.shape, attrs.stride)) return;
  const std::array images{int(ConvDweightInput::kX), int(ConvDweightInput::kDy)};
  allow_tiles(n, bounds, {images, attrs.channels_last, terms});
}

// A mean divides its sum by the number of terms; a sum of squares rounds each square.
void any_reduction(const ComparedNode& n, Bounds& bounds) {
  const auto outputs = std::max<std::int64_t>(n.outputs[0].elements(), 1);
  const std::int64_t terms = n.input(0).elements() / outputs;
  const bool is_mean = n.node().op->name == "mean";
  bound_any_sums(n, bounds, AnySums{always(terms), is_mean ? 1 / double(terms) : 1});
  const double own = n.node().op->name == "sum" ? 0 : 2 * kEps;
  for (Tensor* bound : {&bounds[0], &bounds.usual[0]}) {
    for (std::size_t e = 0; e < n.out(0).size(); ++e) {
      bound->as<double>()[e] += own * std::abs(n.out(0)[e]);
    }
  }
}

// keel adds up sums, means and sums of squares in double, in any order, and rounds once, as
// tests/backends/reduce_test.cpp and the header of sum_squares have it.
void reduction(const ComparedNode& n, Bounds& bounds) {
  if (n.is_external()) return any_reduction(n, bounds);
  const double count = double(n.input(0).elements() + 2);
  const std::vector<Tensor> sums = condition_sums(n);
  for (std::size_t e = 0; e < n.out(0).size(); ++e) {
    bounds[0].as<double>()[e] =
        kEps * std::abs(n.out(0)[e]) + count * 0x1p-53 * sums[0].as<double>()[e] + kTiny;
  }
}

// No term is negative, and the root halves the relative error of the sum. keel adds up in double
// and rounds once, any other kernel as it likes, and rounds the root.
void total_norm(const ComparedNode& n, Bounds& bounds) {
  const auto terms = std::int64_t(n.node().inputs.size());
  const double sum = n.is_external() ? sum_error(terms) : double(terms + 2) * 0x1p-53;
  bounds[0].as<double>()[0] = (kEps + sum) * std::abs(n.out(0)[0]) + kTiny;
}

// keel's kernels: as many terms as the id that occurs most. Any other: of each row as many as its
// own id occurs.
void embedding_backward(const ComparedNode& n, Bounds& bounds) {
  const auto& attrs = n.attrs<EmbeddingBackwardAttrs>();
  std::vector<std::int64_t> counts(std::size_t(attrs.vocabulary), 0);
  for (std::int32_t id : n.input(EmbeddingBackwardInput::kIds).as<std::int32_t>()) {
    if (id >= 0 && id < attrs.vocabulary) ++counts[std::size_t(id)];
  }
  if (n.is_external()) {
    const auto width = std::size_t(n.outputs[0].shape().back());
    return bound_any_sums(n, bounds, AnySums{[&](std::size_t e) { return counts[e / width]; }});
  }
  bound_sums(n, bounds, counts.empty() ? 0 : *std::ranges::max_element(counts));
}

// As of embedding_backward, a row being a group.
void sum_groups(const ComparedNode& n, Bounds& bounds) {
  const auto begins = n.input(SumGroupsInput::kBegins).as<std::int32_t>();
  const auto count = [&](std::size_t g) { return std::int64_t{begins[g + 1]} - begins[g]; };
  if (n.is_external()) {
    const auto width = std::size_t(n.outputs[0].shape().back());
    return bound_any_sums(n, bounds, AnySums{[&](std::size_t e) { return count(e / width); }});
  }
  std::int64_t most = 0;
  for (std::size_t g = 0; g + 1 < begins.size(); ++g) most = std::max(most, count(g));
  bound_sums(n, bounds, most);
}

// As many terms as there are places.
void embedding_bag(const ComparedNode& n, Bounds& bounds) {
  bound_sums(n, bounds, n.input(EmbeddingBagInput::kTables).shape()[0]);
}

// Squares of differences: two roundings of the difference's square, and one of the square.
void order_violation(const ComparedNode& n, Bounds& bounds) {
  const std::int64_t width = n.input(OrderViolationInput::kX).shape()[1];
  const double factor = sum_error(width) + 3 * kEps;
  for (std::size_t e = 0; e < n.out(0).size(); ++e) {
    bounds[0].as<double>()[e] = factor * n.out(0)[e] + double(width + 1) * kTiny;
  }
}

// Sums of products with rounded differences, one for each point of the other side.
void order_violation_backward(const ComparedNode& n, Bounds& bounds) {
  using In = OrderViolationInput;
  const Tensor de = mapped(n.input(In::kDe), size_of_number);
  const std::vector<const Tensor*> inputs{&n.input(In::kX), &n.input(In::kY), &de};
  const std::vector<Tensor> sums = run_node(n.reference, n.graph, n.index, inputs).outputs;
  const Shape& pairs = de.shape();
  for (int side : {OrderViolationOutput::kDx, OrderViolationOutput::kDy}) {
    const double factor = sum_error(pairs[1 - side]) + kEps;
    const auto sizes = sums[std::size_t(side)].as<double>();
    const auto bound = bounds[std::size_t(side)].as<double>();
    for (std::size_t e = 0; e < bound.size(); ++e) {
      bound[e] = factor * std::abs(sizes[e]) + double(pairs[1 - side] + 1) * kTiny;
    }
  }
}

void avg_pool(const ComparedNode& n, Bounds& bounds) {
  const std::int64_t window = n.attrs<PoolAttrs>().window, terms = window * window + 1;
  if (!n.is_external()) return bound_sums(n, bounds, terms);
  bound_any_sums(n, bounds, AnySums{always(terms), 1 / double(window * window)});
}

// An element lies in so many windows along each axis.
void pool_backward(const ComparedNode& n, Bounds& bounds) {
  const auto& attrs = n.attrs<PoolBackwardAttrs>();
  const std::int64_t windows = (attrs.window + attrs.stride - 1) / attrs.stride;
  bound_sums(n, bounds, windows * windows + 1);
}

}  // namespace

void add_sum_rules(BoundRules& rules) {
  for (auto name : {"sum", "mean", "sum_squares"}) rules[name] = reduction;
  rules["total_norm"] = total_norm;
  rules["matmul"] = matmul;
  rules["conv2d"] = conv2d;
  rules["conv2d_backward_input"] = conv2d_input;
  rules["conv2d_backward_weight"] = conv2d_weight;
  rules["embedding_backward"] = embedding_backward;
  rules["sum_groups"] = sum_groups;
  rules["embedding_bag"] = embedding_bag;
  rules["order_violation"] = order_violation;
  rules["order_violation_backward"] = order_violation_backward;
  rules["avg_pool2d"] = avg_pool;
  rules["avg_pool2d_backward"] = rules["max_pool2d_backward"] = pool_backward;
}

}  // namespace keel::compare
