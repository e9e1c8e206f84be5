#include "src/ops/filter_bank.h"

#include <algorithm>

namespace keel {
namespace {

using In = FilterBankInput;
using Out = FilterBankOutput;

void expect_parameters(const InferContext& c) {
  const auto& attrs = c.attrs.as<FilterBankAttrs>();
  const Shape& p = c.shape(In::kP);
  c.expect_floating(In::kP, "p");
  c.expect(p.rank() == 2 && p[1] == FilterParameter::kCount, "p", "(n, 5)", p.text());
  c.expect(attrs.filters >= 2, "filters", "2 or more", fmt::format("{}", attrs.filters));
  c.expect(attrs.rows >= 1 && attrs.columns >= 1, "image", "1 pixel or more each way",
           fmt::format("{} x {}", attrs.rows, attrs.columns));
}

Shape bank(const InferContext& c, std::int64_t pixels) {
  return {c.shape(In::kP)[0], c.attrs.as<FilterBankAttrs>().filters, pixels};
}

std::vector<TensorType> infer(const InferContext& c) {
  expect_parameters(c);
  const auto& attrs = c.attrs.as<FilterBankAttrs>();
  const DType dtype = c.dtype(In::kP);
  return {{dtype, bank(c, attrs.columns)}, {dtype, bank(c, attrs.rows)}};
}

std::vector<TensorType> infer_backward(const InferContext& c) {
  expect_parameters(c);
  const auto& attrs = c.attrs.as<FilterBankAttrs>();
  for (const auto& [place, name, pixels] : {std::tuple{In::kFx, "fx", attrs.columns},
                                            {In::kFy, "fy", attrs.rows},
                                            {In::kDfx, "dfx", attrs.columns},
                                            {In::kDfy, "dfy", attrs.rows}}) {
    if (c.has(place)) c.expect_shape(place, name, bank(c, pixels));
  }
  return {c.input(In::kP)};
}

void backward(BackwardContext& c) {
  if (!c.needs(In::kP)) return;
  c.set(In::kP, c.graph.add(kFilterBankBackward,
                            {c.input(In::kP), c.output(Out::kFx), c.output(Out::kFy),
                             c.grad(Out::kFx), c.grad(Out::kFy)},
                            c.attrs()));
}

}  // namespace

FilterAxis filter_axis(const FilterBankAttrs& attrs, bool is_x) {
  const std::int64_t size = is_x ? attrs.columns : attrs.rows;
  const double longest = double(std::max(attrs.columns, attrs.rows));
  const double per_stride = (longest - 1) / double(attrs.filters - 1);
  if (attrs.grid == FilterGrid::kRelease) return {size, 0, double(size) / 2, per_stride, 1e-4};
  return {size, 1, double(size + 1) / 2, per_stride, 1e-8};
}

const OpInfo kFilterBank{.name = "filter_bank",
                         .inputs = {"p"},
                         .attrs = FilterBankAttrs{},
                         .infer = infer,
                         .backward = backward,
                         .gradient = GradientKind::kExact};
const OpInfo kFilterBankBackward{.name = "filter_bank_backward",
                                 .inputs = {"p", "fx", "fy", "dfx", "dfy"},
                                 .attrs = FilterBankAttrs{},
                                 .infer = infer_backward};

namespace ops {

FilterBank filter_bank(Graph& g, Value p, const FilterBankAttrs& attrs) {
  const Value fx = g.add(kFilterBank, {p}, attrs);
  return {fx, fx.at(Out::kFy)};
}

}  // namespace ops
}  // namespace keel
