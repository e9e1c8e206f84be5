#include "src/ops/norm/ada_norm.h"

#include <cmath>

#include "src/ops/norm/row_norm.h"

namespace keel {
namespace {

using In = AdaNormInput;
using Out = AdaNormOutput;
using BackIn = AdaNormBackwardInput;
using BackOut = AdaNormGradient;
using Types = std::vector<TensorType>;

RowSizes expect_sizes(const InferContext& c) {
  const auto& attrs = c.attrs.as<AdaNormAttrs>();
  const RowSizes sizes = expect_rows(c, attrs.axes);
  expect_statistic(c, attrs.statistic(), sizes.width);
  return sizes;
}

Types infer(const InferContext& c) {
  const TensorType per_row{wide_type(c), Shape{expect_sizes(c).rows}};
  return {wide_x(c), per_row, per_row};
}

Types infer_backward(const InferContext& c) {
  const Shape rows{expect_sizes(c).rows};
  c.expect_shape(BackIn::kMean, "mean", rows);
  c.expect_shape(BackIn::kRstd, "rstd", rows);
  expect_dy(c, BackIn::kDy);
  return {wide_x(c)};
}

void backward(BackwardContext& c) {
  c.set(In::kX, c.graph.add(kAdaNormBackward,
                            {c.input(In::kX), c.output(Out::kMean), c.output(Out::kRstd),
                             gradient_like_x(c)},
                            c.attrs()));
}

double largest_factor(const Attrs& of, double xhat) {
  const auto& attrs = of.as<AdaNormAttrs>();
  return std::abs(attrs.C) * (1 + 2 * std::abs(attrs.k * xhat));
}

}  // namespace

const OpInfo kAdaNorm{.name = "ada_norm",
                      .inputs = {"x"},
                      .output_names = {"y", "mean", "rstd"},
                      .attrs = AdaNormAttrs{},
                      .infer = infer,
                      .backward = backward,
                      .gradient = GradientKind::kDetached,
                      .norm = NormTraits{.largest_factor = largest_factor}};
const OpInfo kAdaNormBackward{.name = "ada_norm_backward",
                              .inputs = {"x", "mean", "rstd", "dy"},
                              .output_names = {"dx"},
                              .attrs = AdaNormAttrs{},
                              .infer = infer_backward,
                              .forward = &kAdaNorm,
                              .in_place = {{BackIn::kDy, BackOut::kDx}}};

namespace ops {

Value ada_norm(Graph& g, Value x, const AdaNormAttrs& attrs) { return g.add(kAdaNorm, {x}, attrs); }

}  // namespace ops
}  // namespace keel
