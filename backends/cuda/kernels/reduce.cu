// Sums, means and maxima over axes, the gradient of max, and stretching back.
#include "backends/cuda/kernels/gather.cuh"
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/reduction.cuh"
#include "src/ops/reduce.h"

namespace keel::cuda {
namespace {

// Where x has its result's largest value; elements lie in x in the order in which they are met.
struct LargestPlaces {
  using Value = std::int64_t;
  Global<const float> x, y;
  __device__ std::int64_t operator()(std::int64_t result, std::int64_t at) const {
    return x[at] == y[result] ? at : Smallest::kNeutral;
  }
};

struct StoreGradient {
  Global<const float> dy;
  Global<float> dx;
  __device__ void operator()(std::int64_t result, std::int64_t at) const {
    if (at != Smallest::kNeutral) dx[at] = dy[result];
  }
};

__global__ void set_to_zero(Global<float> x) {
  for (std::int64_t e = grid_thread(); e < x.size(); e += grid_threads()) x[e] = 0;
}

void run_max_backward(const Binding& b, const Reduction& r) {
  using In = MaxBackwardInput;
  const auto dy = input(b.inputs[In::kDy]), x = input(b.inputs[In::kX]),
             y = input(b.inputs[In::kY]);
  const auto dx = output(b.outputs[0]);
  launch(set_to_zero, one_thread_each(dx.size()), dx);
  reduce<Smallest>(r, LargestPlaces{x, y}, b.workspace, StoreGradient{dy, dx});
}

// The axes along which `from` is stretched to x.
std::vector<std::int64_t> stretched_axes(const Shape& from, const Shape& x) {
  std::vector<std::int64_t> axes;
  const int lead = x.rank() - from.rank();
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (axis < lead || from[axis - lead] != x[axis]) axes.push_back(axis);
  }
  return axes;
}

}  // namespace

Prepared prepare_reduce(const NodeContext& context) {
  const Reduction r = make_reduction(context.input(0).shape, context.attrs<ReduceAttrs>().axes);
  if (context.node.op == &kMax) {
    return kernel_of(
        [r](const Binding& b) {
          reduce<Largest>(r, Elements<float>{input(b.inputs[0])}, b.workspace,
                          StoreQuotient{output(b.outputs[0])});
        },
        partial_bytes<float>(r));
  }
  const double divisor = context.node.op == &kMean ? double(r.terms) : 1;
  return kernel_of(
      [r, divisor](const Binding& b) {
        reduce<Add>(r, Elements<double, float>{input(b.inputs[0])}, b.workspace,
                    StoreQuotient{output(b.outputs[0]), divisor});
      },
      partial_bytes<double>(r));
}

Prepared prepare_max_backward(const NodeContext& context) {
  using In = MaxBackwardInput;
  const Shape &x = context.input(In::kX).shape, &y = context.input(In::kY).shape;
  const Reduction r = make_reduction(x, stretched_axes(y, x));
  return kernel_of([r](const Binding& b) { run_max_backward(b, r); },
                   partial_bytes<std::int64_t>(r));
}

Prepared prepare_broadcast_to(const NodeContext& context) {
  const Shape& y = context.output().shape;
  const Window window{extent(y), stretched(context.input(0).shape, y)};
  return kernel_of([window](const Binding& b) { gather(b.outputs[0], b.inputs[0], window); });
}

}  // namespace keel::cuda
