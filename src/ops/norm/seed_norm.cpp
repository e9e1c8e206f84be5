#include "src/ops/norm/seed_norm.h"

#include "src/ops/norm/row_norm.h"

namespace keel {
namespace {

using In = SeedNormInput;
using Out = SeedNormOutput;
using BackIn = SeedNormBackwardInput;
using BackOut = SeedNormGradient;
using Types = std::vector<TensorType>;

// Checks what forward and backward both have, in the same places. Returns the type of what a row
// has one of.
TensorType expect_inputs(const InferContext& c) {
  const auto& attrs = c.attrs.as<SeedNormAttrs>();
  const RowSizes sizes = expect_rows(c, attrs.axes);
  expect_statistic(c, {.eps = attrs.eps}, sizes.width);
  const Shape row = row_shape(c.shape(In::kX), attrs.axes);
  for (const int place : {In::kGain, In::kA, In::kB}) {
    const std::string_view name = c.op.inputs[std::size_t(place)].name;
    if (place == In::kGain && !c.has(place)) continue;
    c.expect(c.has(place), name, row.text(), "none");
    c.expect_shape(place, name, row);
    c.expect_dtype(place, name, wide_type(c));
  }
  return {wide_type(c), Shape{sizes.rows}};
}

Types infer(const InferContext& c) {
  const TensorType of_row = expect_inputs(c);
  return {wide_x(c), of_row, of_row};
}

Types infer_backward(const InferContext& c) {
  const TensorType of_row = expect_inputs(c);
  c.expect_shape(BackIn::kRstd, "rstd", of_row.shape);
  c.expect_shape(BackIn::kScore, "score", of_row.shape);
  expect_dy(c, BackIn::kDy);
  return {wide_x(c), gradient_type(c, BackIn::kGain), c.input(BackIn::kA), c.input(BackIn::kB)};
}

void backward(BackwardContext& c) {
  set_gradients(c,
                c.graph.add(kSeedNormBackward,
                            {c.input(In::kX), c.input(In::kGain), c.input(In::kA), c.input(In::kB),
                             c.output(Out::kRstd), c.output(Out::kScore), gradient_like_x(c)},
                            c.attrs()));
}

}  // namespace

const OpInfo kSeedNorm{.name = "seed_norm",
                       .inputs = {"x", "gain", "a", "b"},
                       .output_names = {"y", "rstd", "score"},
                       .attrs = SeedNormAttrs{},
                       .infer = infer,
                       .backward = backward,
                       .gradient = GradientKind::kExact,
                       .norm = NormTraits{}};
const OpInfo kSeedNormBackward{.name = "seed_norm_backward",
                               .inputs = {"x", "gain", "a", "b", "rstd", "score", "dy"},
                               .output_names = {"dx", "dgain", "da", "db"},
                               .attrs = SeedNormAttrs{},
                               .infer = infer_backward,
                               .forward = &kSeedNorm,
                               .in_place = {{BackIn::kDy, BackOut::kDx}}};

namespace ops {

Value seed_norm(Graph& g, Value x, const SeedParameters& of, const SeedNormAttrs& attrs) {
  return g.add(kSeedNorm, {x, of.gain, of.a, of.b}, attrs);
}

}  // namespace ops
}  // namespace keel
