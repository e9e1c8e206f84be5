// Softmax, its logarithm and their gradients, row by row. After its row's sums, each element is
// written by the thread that read it, so outputs may lie over the first input.
#include "backends/cuda/kernels/functions.cuh"
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/norm/row.cuh"

namespace keel::cuda {
namespace {

template <class R>
__device__ float largest(const R& row) {
  return row.over(Largest(), [](std::int64_t, float x) { return x; });
}
// The sum of exp(x - max).
template <class R>
__device__ double exp_sum(const R& row, float max) {
  return row.sum([=](std::int64_t, float x) { return double(exponential(x - max)); });
}

// y = exp(x - max) / sum exp(x - max)
struct Softmax {
  static constexpr int kTensors = 1;
  template <class R>
  __device__ static void run(const R& row, Global<float> y) {
    const float max = largest(row), factor = float(1 / exp_sum(row, max));
    row.store(y, [=](std::int64_t, float x) { return exponential(x - max) * factor; });
  }
};

// y = x - max - log sum exp(x - max)
struct LogSoftmax {
  static constexpr int kTensors = 1;
  template <class R>
  __device__ static void run(const R& row, Global<float> y) {
    const float max = largest(row), log_sum = float(log(exp_sum(row, max)));
    row.store(y, [=](std::int64_t, float x) { return x - max - log_sum; });
  }
};

// dx = y (dy - sum(dy y))
struct SoftmaxBackward {
  static constexpr int kTensors = 2;
  template <class R>
  __device__ static void run(const R& row, Global<float> dx) {
    const float projection =
        float(row.sum([](std::int64_t, float dy, float y) { return double(dy) * y; }));
    row.store(dx, [=](std::int64_t, float dy, float y) { return y * (dy - projection); });
  }
};

// dx = dy - exp(y) sum(dy)
struct LogSoftmaxBackward {
  static constexpr int kTensors = 2;
  template <class R>
  __device__ static void run(const R& row, Global<float> dx) {
    const float total = float(row.sum([](std::int64_t, float dy, float) { return double(dy); }));
    row.store(dx, [=](std::int64_t, float dy, float y) { return dy - exponential(y) * total; });
  }
};

template <int kTensors>
struct Rows {
  RowSizes sizes;
  Global<const float> in[kTensors];
  Global<float> out;
};

template <class R, class Op>
__global__ void __launch_bounds__(R::kBlock) run_rows(Rows<Op::kTensors> rows) {
  if (R::is_idle(rows.sizes.rows)) return;
  const R row(rows.in, rows.sizes);
  Op::run(row, rows.out);
}

template <class Op>
Prepared prepare_rows(const NodeContext& context) {
  const Shape& shape = context.input(0).shape;
  Rows<Op::kTensors> rows{{shape.elements() / shape.back(), shape.back()}, {}, {}};
  return kernel_of([rows](const Binding& b) {
    Rows<Op::kTensors> bound = rows;
    for (int i = 0; i < Op::kTensors; ++i) bound.in[i] = input(b.inputs[std::size_t(i)]);
    bound.out = output(b.outputs[0]);
    with_row<Op::kTensors>(rows.sizes.width, [&]<class R>(std::type_identity<R> row) {
      launch(run_rows<R, Op>, grid_of_rows(row, rows.sizes.rows), bound);
    });
  });
}

}  // namespace

Prepared prepare_softmax(const NodeContext& context) { return prepare_rows<Softmax>(context); }
Prepared prepare_softmax_backward(const NodeContext& context) {
  return prepare_rows<SoftmaxBackward>(context);
}
Prepared prepare_log_softmax(const NodeContext& context) {
  return prepare_rows<LogSoftmax>(context);
}
Prepared prepare_log_softmax_backward(const NodeContext& context) {
  return prepare_rows<LogSoftmaxBackward>(context);
}

}  // namespace keel::cuda
