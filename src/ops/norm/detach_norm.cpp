#include "src/ops/norm/detach_norm.h"

#include "src/ops/norm/row_norm.h"

namespace keel {
namespace {

using In = DetachNormInput;
using Out = DetachNormOutput;
using BackIn = DetachNormBackwardInput;
using BackOut = DetachNormGradient;
using Types = std::vector<TensorType>;

Types infer(const InferContext& c) {
  const auto& attrs = c.attrs.as<DetachNormAttrs>();
  const RowSizes sizes = expect_rows(c, attrs.axes);
  expect_statistic(c, attrs.statistic(), sizes.width);
  c.expect(attrs.detach_mean || attrs.detach_variance, "detach_mean, detach_variance",
           "at least one", "none");
  const TensorType per_row{wide_type(c), Shape{sizes.rows}};
  return {wide_x(c), per_row, per_row};
}

Types infer_backward(const InferContext& c) {
  const auto& attrs = c.attrs.as<DetachNormAttrs>();
  const Shape& dy = c.shape(BackIn::kDy);
  const Shape rows{row_sizes(dy, attrs.axes).rows};
  if (!attrs.detach_variance) {
    expect_dy(c, BackIn::kDy);
    c.expect_shape(BackIn::kMean, "mean", rows);
  }
  c.expect_shape(BackIn::kRstd, "rstd", rows);
  return {{wide_type(c, BackIn::kDy), dy}};
}

void backward(BackwardContext& c) {
  const bool needs_xhat = !c.attrs().as<DetachNormAttrs>().detach_variance;
  const Value x = needs_xhat ? c.input(In::kX) : Value{};
  const Value mean = needs_xhat ? c.output(Out::kMean) : Value{};
  c.set(In::kX, c.graph.add(kDetachNormBackward,
                            {x, mean, c.output(Out::kRstd), gradient_like_x(c)}, c.attrs()));
}

}  // namespace

const OpInfo kDetachNorm{.name = "detach_norm",
                         .inputs = {"x"},
                         .output_names = {"y", "mean", "rstd"},
                         .attrs = DetachNormAttrs{},
                         .infer = infer,
                         .backward = backward,
                         .gradient = GradientKind::kDetached,
                         .norm = NormTraits{}};
const OpInfo kDetachNormBackward{.name = "detach_norm_backward",
                                 .inputs = {"x", "mean", "rstd", "dy"},
                                 .output_names = {"dx"},
                                 .attrs = DetachNormAttrs{},
                                 .infer = infer_backward,
                                 .forward = &kDetachNorm,
                                 .in_place = {{BackIn::kDy, BackOut::kDx}}};

namespace ops {

Value detach_norm(Graph& g, Value x, const DetachNormAttrs& attrs) {
  return g.add(kDetachNorm, {x}, attrs);
}

}  // namespace ops
}  // namespace keel
