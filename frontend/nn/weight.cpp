#include "frontend/nn/weight.h"

#include "frontend/nn/init.h"
#include "src/ops/elementwise.h"
#include "src/ops/layout.h"
#include "src/ops/norm/weight_norm.h"
#include "src/ops/reduce.h"

namespace keel::nn {
namespace {

// The mean over all axes but one, whose sizes are kept.
Value mean_of_units(Graph& g, Value x, int unit_axis) {
  std::vector<std::int64_t> axes;
  for (int axis = 0; axis < g.shape(x).rank(); ++axis) {
    if (axis != unit_axis) axes.push_back(axis);
  }
  return ops::mean(g, x, axes, true);
}

// The deviation of y by gain_init, given y - mean(y). Where the square of the deviation is below
// 1e-12 mean(y^2), less than f32 can tell from 0, it is 1.
Value deviation_of_units(Graph& g, Value y, Value centred, int unit_axis, double gain_init) {
  const Value var = mean_of_units(g, ops::square(g, centred), unit_axis);
  const Value floor = ops::scale(g, mean_of_units(g, ops::square(g, y), unit_axis), 1e-12);
  const Value one = g.constant(1.0, g.type(y).dtype);
  const Value q = ops::scale(g, ops::sqrt(g, var), 1 / gain_init);
  return ops::select(g, ops::less(g, floor, var), q, one);
}

}  // namespace

WeightParametrization parametrize_weight(Net& net, Value v, int unit_axis, const WeightForm& form) {
  Graph& g = net.graph;
  if (form.centralize) v = ops::sub(g, v, mean_of_units(g, v, unit_axis));
  if (!form.normalize) return {v, {}};
  const Shape units{g.shape(v)[unit_axis]};
  const Value gain = net.parameter("gain", units, constant(form.gain_init));
  return {ops::weight_norm(g, v, gain, {.by_column = unit_axis == 1, .eps = form.eps}), gain};
}

DataDependentInit measure_batch(Net& net, Value y, int unit_axis, double gain_init) {
  Graph& g = net.graph;
  const Value mean = mean_of_units(g, y, unit_axis);
  const Value q = deviation_of_units(g, y, ops::sub(g, y, mean), unit_axis, gain_init);
  const int last = g.shape(y).rank() - 1;
  if (unit_axis != last) return {mean, q};
  const Shape units{g.shape(y)[last]};
  return {ops::reshape(g, mean, units), ops::reshape(g, q, units)};
}

void start_parameters(Net& net, const DataDependentInit& start, Value gain, Value bias) {
  Graph& g = net.graph;
  const auto per_unit = [&](Value v) { return ops::reshape(g, v, g.shape(gain)); };
  const Value q = per_unit(start.deviation);
  g.mark_update(gain, ops::div(g, gain, q));
  if (bias.valid()) {
    g.mark_update(bias, ops::div(g, ops::sub(g, bias, per_unit(start.mean)), q));
  }
}

Value started(Net& net, Value y, const DataDependentInit& start, bool has_bias) {
  Graph& g = net.graph;
  return ops::div(g, has_bias ? ops::sub(g, y, start.mean) : y, start.deviation);
}

}  // namespace keel::nn
