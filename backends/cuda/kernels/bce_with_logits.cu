// Binary cross entropy on logits, four elements a thread; terms are added up in double.
#include "backends/cuda/kernels/elementwise_step.cuh"
#include "backends/cuda/kernels/functions.cuh"
#include "backends/cuda/kernels/group4.cuh"
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/loss.cuh"
#include "backends/cuda/kernels/reduction.cuh"
#include "src/ops/loss.h"

namespace keel::cuda {
namespace {

using In = BceInput;
using Out = BceOutput;

struct BceTerms {
  using Value = double;
  Global<const float> x, t;
  __device__ double operator()(std::int64_t, std::int64_t q) const {
    const Group4 logits = load_group4(x, q), targets = load_group4(t, q);
    double sum = 0;
    for (int i = 0; i < 4 && 4 * q + i < x.size(); ++i) {
      const float value = logits.at[i], positive = value <= 0 ? 0 : value;  // NaN stays
      sum += (positive - value * targets.at[i]) + log1pf(exponential(-fabsf(value)));
    }
    return sum;
  }
};

struct StoreMeanAndSum {
  Global<float> mean, sum;
  double count;
  __device__ void operator()(std::int64_t, double total) const {
    mean[0] = float(total / count);
    sum[0] = float(total);
  }
};

__global__ void bce_backward(Global<const float> x, Global<const float> t, TermGradient gradient,
                             Global<float> dx) {
  const float factor = gradient(double(x.size()));
  for (std::int64_t q = grid_thread(); q < groups4_of(x.size()); q += grid_threads()) {
    Group4 group4 = load_group4(x, q);
    const Group4 targets = load_group4(t, q);
    for (int i = 0; i < 4; ++i) group4.at[i] = factor * (sigmoid(group4.at[i]) - targets.at[i]);
    store_group4(dx, q, group4);
  }
}

}  // namespace

Prepared prepare_bce_with_logits(const NodeContext& context) {
  const std::int64_t elements = context.input(In::kLogits).shape.elements();
  const Reduction r = reduction_of_all(groups4_of(elements));
  return kernel_of(
      [=](const Binding& b) {
        reduce<Add>(r, BceTerms{input(b.inputs[In::kLogits]), input(b.inputs[In::kTargets])},
                    b.workspace,
                    StoreMeanAndSum{output(b.outputs[Out::kMean]), output(b.outputs[Out::kSum]),
                                    double(elements)});
      },
      partial_bytes<double>(r));
}

Prepared prepare_bce_with_logits_backward(const NodeContext&) {
  return kernel_of([](const Binding& b) {
    const auto x = input(b.inputs[In::kLogits]);
    const TermGradient gradient{input(b.inputs[In::kDmean]), input(b.inputs[In::kDsum])};
    launch(bce_backward, one_thread_a_group4(x.size()), x, input(b.inputs[In::kTargets]), gradient,
           output(b.outputs[0]));
  });
}

}  // namespace keel::cuda
