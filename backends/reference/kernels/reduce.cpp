// Sums, means and maxima over axes, and stretching back. Each op loops over x and finds, for every
// element, its element of the reduced tensor.
#include "src/ops/reduce.h"

#include <algorithm>
#include <limits>

#include "backends/reference/kernels/kernels.h"
#include "backends/reference/kernels/walk.h"
#include "src/ops/elementwise.h"

namespace keel::reference {
namespace {

// y = sum of x over the reduced axes. `strides` lead from x to y.
void sum(const Binding& b, const Strides& strides) {
  const double* x = b.inputs[0].as<double>();
  double* y = b.outputs[0].as<double>();
  vector(b.outputs[0]).setZero();
  walk(b.inputs[0].type.shape, {&strides, 1},
       [&](std::int64_t e, const auto& offsets) { y[offsets[0]] += x[e]; });
}

void mean(const Binding& b, const Strides& strides) {
  sum(b, strides);
  const double count = double(b.inputs[0].elements()) / double(b.outputs[0].elements());
  vector(b.outputs[0]) /= count;
}

// y = largest x; a NaN is larger than every number.
void max(const Binding& b, const Strides& strides) {
  const double* x = b.inputs[0].as<double>();
  double* y = b.outputs[0].as<double>();
  vector(b.outputs[0]).setConstant(-std::numeric_limits<double>::infinity());
  walk(b.inputs[0].type.shape, {&strides, 1}, [&](std::int64_t e, const auto& offsets) {
    y[offsets[0]] = evaluate(EwCode::kMaximum, {y[offsets[0]], x[e]}, {});
  });
}

// dx = dy at the first element of x that equals y, 0 elsewhere. dy and y have the axes kept.
void max_backward(const Binding& b) {
  using In = MaxBackwardInput;
  const double *dy = b.inputs[In::kDy].as<double>(), *x = b.inputs[In::kX].as<double>(),
               *y = b.inputs[In::kY].as<double>();
  double* dx = b.outputs[0].as<double>();
  const Shape& shape = b.inputs[In::kX].type.shape;
  const Strides strides = stretched_strides(b.inputs[In::kY].type.shape, shape);
  std::vector<bool> found(std::size_t(b.inputs[In::kY].elements()), false);
  walk(shape, {&strides, 1}, [&](std::int64_t e, const auto& offsets) {
    const std::int64_t place = offsets[0];
    const bool is_first = x[e] == y[place] && !found[std::size_t(place)];
    dx[e] = is_first ? dy[place] : 0;
    if (is_first) found[std::size_t(place)] = true;
  });
}

}  // namespace

Prepared prepare_reduce(const NodeContext& context) {
  const Shape& x = context.input(0).shape;
  const Strides strides = stretched_strides(kept_shape(x, context.attrs<ReduceAttrs>().axes), x);
  const auto run = context.node.op == &kSum ? sum : context.node.op == &kMean ? mean : max;
  return kernel_of([=](const Binding& b) { run(b, strides); });
}

Prepared prepare_max_backward(const NodeContext&) { return kernel_of(max_backward); }

Prepared prepare_broadcast_to(const NodeContext& context) {
  const Strides strides = stretched_strides(context.input(0).shape, context.output().shape);
  return kernel_of([=](const Binding& b) { gather(b.outputs[0], b.inputs[0], strides); });
}

}  // namespace keel::reference
