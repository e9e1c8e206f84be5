// Norms of a layer's weight, applied before the layer multiplies by it.
#pragma once

#include "frontend/nn/net.h"

namespace keel::nn {

// The operations on the weights v_i of each output unit i, in this order:
struct WeightForm {
  bool centralize = false;  // v_i - mean(v_i)  (Yan et al. 2020)
  bool normalize = false;   // gain_i v_i / sqrt(|v_i|^2 + eps)  (Salimans & Kingma 2016)
  double eps = 0;           // of normalize
  double deviation = 0.05;  // of normalize: v is drawn from N(0, deviation^2)
  double gain_init = 1;     // of normalize: the first gain, see DataDependentInit

  bool is_plain() const { return !centralize && !normalize; }
};

struct WeightParametrization {
  Value weight;  // like v
  Value gain;    // (out), the parameter "gain"; absent unless normalized
};

// v (out, ...), where v_i is v[i]; or (in, out), where v_i is column i, if unit_axis is 1.
WeightParametrization parametrize_weight(Net& net, Value v, int unit_axis, const WeightForm& form);

// Data-dependent initialization (Salimans & Kingma 2016, section 3), for a net in
// kDataDependentInit: with m the mean and q gain_init the deviation of each unit's outputs y over
// the batch,
//     gain <- gain / q,   bias <- (bias - m) / q,
// so that the layer gives (y - m) / q, with the deviation gain_init, and the layers after it
// measure their statistics on that. A unit that is constant in the batch has q = 1; without a bias
// m is not subtracted.
struct DataDependentInit {
  Value mean, deviation;  // m and q: (out) if the units lie along the last axis of y,
                          // else (1, out, 1, 1)
};
DataDependentInit measure_batch(Net& net, Value y, int unit_axis, double gain_init = 1);
// Marks the updates of gain (out), and of bias (out) unless it is absent.
void start_parameters(Net& net, const DataDependentInit& start, Value gain, Value bias);
// The output that the layer will have after that, where its output is y now.
Value started(Net& net, Value y, const DataDependentInit& start, bool has_bias);

}  // namespace keel::nn
