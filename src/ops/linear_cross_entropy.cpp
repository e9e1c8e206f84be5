#include "src/ops/linear_cross_entropy.h"

#include <algorithm>

#include "src/ops/product_type.h"

namespace keel {
namespace {

using In = LinearLossInput;
using Out = LinearLossOutput;
using Types = std::vector<TensorType>;

void expect_cutoffs(const InferContext& c, const LinearLossAttrs& attrs, std::int64_t vocabulary) {
  const std::vector<std::int64_t>& cutoffs = attrs.cutoffs;
  const bool ascend = std::ranges::is_sorted(cutoffs, std::less_equal<>());
  const bool within = cutoffs.empty() || (cutoffs.front() > 0 && cutoffs.back() < vocabulary);
  c.expect(ascend && within, "cutoffs",
           fmt::format("ascending numbers between 0 and {}", vocabulary),
           fmt::format("{}", fmt::join(cutoffs, ", ")));
  const double s = attrs.label_smoothing;
  c.expect(s >= 0 && s <= 1, "label_smoothing", "in [0, 1]", fmt::format("{}", s));
}

void expect_operands(const InferContext& c) {
  const auto& attrs = c.attrs.as<LinearLossAttrs>();
  const Shape &x = c.shape(In::kX), &table = c.shape(In::kTable);
  c.expect_floating(In::kX, "x");
  c.expect(x.rank() == 2 && x[1] >= 1, "x", "(rows, d >= 1)", x.text());
  c.expect(table.rank() == 2 && table[0] >= 1 && table[1] == x[1], "table",
           fmt::format("(words >= 1, {})", x[1]), table.text());
  if (c.has(In::kBias)) c.expect_shape(In::kBias, "bias", {table[0]});
  expect_cutoffs(c, attrs, table[0]);
  const std::int64_t clusters = std::ssize(attrs.cutoffs);
  c.expect(c.has(In::kClusters) == (clusters > 0), "clusters",
           clusters > 0 ? "one for each cut-off" : "none without cut-offs",
           c.has(In::kClusters) ? "some" : "none");
  if (clusters > 0) c.expect_shape(In::kClusters, "clusters", {clusters, x[1]});
  c.expect(c.has(In::kClusterBias) == (clusters > 0 && c.has(In::kBias)), "cluster_bias",
           "one if there are both a bias and clusters", c.has(In::kClusterBias) ? "one" : "none");
  if (c.has(In::kClusterBias)) c.expect_shape(In::kClusterBias, "cluster_bias", {clusters});
  for (int place = In::kTable; place <= In::kClusterBias; ++place) {
    const bool is_bias = place == In::kBias || place == In::kClusterBias;
    const DType factors = c.dtype(In::kX), expected = is_bias ? product_type(factors) : factors;
    if (c.has(place)) c.expect_dtype(place, input_name(c.op, place), expected);
  }
  c.expect_dtype(In::kLabels, "labels", DType::kI32);
  c.expect_shape(In::kLabels, "labels", {x[0]});
}

Shape lse_shape(const InferContext& c) {
  return {1 + std::ssize(c.attrs.as<LinearLossAttrs>().cutoffs), c.shape(In::kX)[0]};
}

Types infer(const InferContext& c) {
  expect_operands(c);
  const DType dtype = product_type(c.dtype(In::kX));
  return {{dtype, {}}, {dtype, {}}, {dtype, lse_shape(c)}};
}

void expect_like_x(const InferContext& c, int place, const Shape& shape) {
  c.expect_shape(place, input_name(c.op, place), shape);
  c.expect_dtype(place, input_name(c.op, place), product_type(c.dtype(In::kX)));
}

Types gradient_types(const InferContext& c) {
  const DType dtype = product_type(c.dtype(In::kX));
  Types gradients;
  for (int place = In::kX; place <= In::kClusterBias; ++place) {
    gradients.push_back(c.has(place) ? TensorType{dtype, c.shape(place)} : absent_type(dtype));
  }
  return gradients;
}

Types infer_backward(const InferContext& c) {
  expect_operands(c);
  expect_like_x(c, In::kLse, lse_shape(c));
  expect_like_x(c, In::kDsum, {});
  return gradient_types(c);
}

Types infer_step(const InferContext& c) {
  Types types = infer(c);
  expect_like_x(c, LinearLossStep::kDsumInput, {});
  const Types gradients = gradient_types(c);
  types.insert(types.end(), gradients.begin(), gradients.end());
  return types;
}

void backward(BackwardContext& c) {
  for (int other : {Out::kNll, Out::kLse}) {
    check(!c.grad(other).valid(), ErrorKind::kUsage,
          "[linear_cross_entropy] nll and lse: expected no gradient, got one");
  }
  std::vector<Value> inputs;
  for (int place = In::kX; place <= In::kLabels; ++place) inputs.push_back(c.input(place));
  inputs.push_back(c.output(Out::kLse));
  inputs.push_back(c.grad(Out::kSum));
  const Value d = c.graph.add(kLinearCrossEntropyBackward, inputs, c.attrs());
  for (int place = In::kX; place <= In::kClusterBias; ++place) {
    if (c.needs(place)) c.set(place, d.at(place));
  }
}

const std::vector<OpInput> kOperands{"x",        "table",        "bias",
                                     "clusters", "cluster_bias", {"labels", DType::kI32}};

std::vector<OpInput> with(std::vector<OpInput> inputs, std::initializer_list<OpInput> more) {
  inputs.insert(inputs.end(), more);
  return inputs;
}

}  // namespace

std::vector<LossPart> loss_parts(const LinearLossAttrs& attrs, std::int64_t vocabulary) {
  const auto clusters = std::ssize(attrs.cutoffs);
  std::vector<LossPart> parts{
      {0, clusters > 0 ? attrs.cutoffs[0] : vocabulary, clusters, attrs.ignore_index}};
  for (std::size_t i = 0; i < attrs.cutoffs.size(); ++i) {
    const bool is_last = i + 1 == attrs.cutoffs.size();
    parts.push_back(
        {attrs.cutoffs[i], is_last ? vocabulary : attrs.cutoffs[i + 1], 0, attrs.ignore_index});
  }
  return parts;
}

std::int64_t class_of(const LinearLossAttrs& attrs, const LossPart& part, std::int64_t label,
                      std::int64_t vocabulary) {
  if (label < 0 || label >= vocabulary) return -1;
  if (label < part.last) return label - part.first;
  const auto after = std::ranges::upper_bound(attrs.cutoffs, label);  // cut-offs up to the label
  return part.words() + (after - attrs.cutoffs.begin()) - 1;
}

const OpInfo kLinearCrossEntropy{.name = "linear_cross_entropy",
                                 .inputs = kOperands,
                                 .attrs = LinearLossAttrs{},
                                 .infer = infer,
                                 .backward = backward,
                                 .gradient = GradientKind::kExact};
const OpInfo kLinearCrossEntropyBackward{.name = "linear_cross_entropy_backward",
                                         .inputs = with(kOperands, {"lse", "dsum"}),
                                         .attrs = LinearLossAttrs{},
                                         .infer = infer_backward};
const OpInfo kLinearCrossEntropyStep{.name = "linear_cross_entropy_step",
                                     .inputs = with(kOperands, {"dsum"}),
                                     .attrs = LinearLossAttrs{},
                                     .infer = infer_step};

namespace ops {

LinearLoss linear_cross_entropy(Graph& g, const LinearLossOperands& operands,
                                const LinearLossAttrs& attrs) {
  const auto& [x, table, bias, clusters, cluster_bias, labels] = operands;
  const Value sum =
      g.add(kLinearCrossEntropy, {x, table, bias, clusters, cluster_bias, labels}, attrs);
  return {sum, sum.at(Out::kNll)};
}

}  // namespace ops
}  // namespace keel
