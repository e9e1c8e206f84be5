// The backward of linear_cross_entropy. Each tile of logits is computed again and becomes P, their
// gradient; products with it are added to dx, and are what dT has for the tile's classes. Beside
// factors of bf16, P is rounded to bf16 as a factor, but not in the gradients of biases.
#include <cmath>

#include "backends/cuda/kernels/functions.cuh"
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/linear_loss.cuh"

namespace keel::cuda {
namespace {

using In = LinearLossInput;
using Out = LinearLossGradient;

// P takes the place of the logits.
__global__ void differentiate_logits(LinearLoss of, Global<const float> lse,
                                     Global<const float> dsum) {
  const std::int64_t n = of.tile.count;
  const float gradient = dsum[0], share = float(of.smoothing / double(of.classes));
  const float own = float((1 - of.smoothing) * gradient);
  for (std::int64_t e = grid_thread(); e < of.row_count() * n; e += grid_threads()) {
    const std::int64_t r = e / n, c = e % n;
    float& z = of.z[r * kTileClasses + c];
    const float d = gradient * (exponential(z - lse[of.part.rows[r]]) - share);
    z = of.part.hot[r] == of.tile.first + c ? d - own : d;
  }
}

// P as a factor of products.
__device__ float factor_of(const LinearLoss& of, std::int64_t r, std::int64_t c) {
  const float p = of.z[r * kTileClasses + c];
  return of.is_narrow ? in_bf16(p) : p;
}

// dx += P T
struct RowGradient {
  LinearLoss of;
  Global<float> dx;
  std::int64_t columns;

  __device__ std::int64_t rows() const { return of.row_count(); }
  __device__ std::int64_t terms() const { return of.tile.count; }
  __device__ float a(std::int64_t r, std::int64_t c) const { return factor_of(of, r, c); }
  __device__ float b(std::int64_t c, std::int64_t f) const {
    return of.tile.classes[c * of.width + f];
  }
  __device__ void store(std::int64_t r, std::int64_t f, float sum) const {
    dx[of.part.rows[r] * of.width + f] += sum;
  }
};

// dT = P^T x
struct ClassGradient {
  LinearLoss of;
  std::int64_t columns;

  __device__ std::int64_t rows() const { return of.tile.count; }
  __device__ std::int64_t terms() const { return of.row_count(); }
  __device__ float a(std::int64_t c, std::int64_t r) const { return factor_of(of, r, c); }
  __device__ float b(std::int64_t r, std::int64_t f) const {
    return of.x[of.part.rows[r] * of.width + f];
  }
  __device__ void store(std::int64_t c, std::int64_t f, float sum) const {
    of.tile.dclasses[c * of.width + f] = sum;
  }
};

// db: the sums of P over rows. A thread has a class.
__global__ void add_rows(LinearLoss of) {
  for (std::int64_t c = grid_thread(); c < of.tile.count; c += grid_threads()) {
    double sum = 0;
    for (std::int64_t r = 0; r < of.row_count(); ++r) sum += double(of.z[r * kTileClasses + c]);
    of.tile.dbias[c] = float(sum);
  }
}

__global__ void clear(Global<float> x) {
  for (std::int64_t e = grid_thread(); e < x.size(); e += grid_threads()) x[e] = 0;
}

// Where the gradients of a tile belong, whose first class is word or cluster `at`.
void place_gradients(LinearLoss& work, const Binding& b, bool is_words, std::int64_t at) {
  const TensorRef& rows = b.outputs[is_words ? Out::kDtable : Out::kDclusters];
  const TensorRef& bias = b.outputs[is_words ? Out::kDbias : Out::kDclusterBias];
  work.tile.dclasses = {rows.as<float>() + at * work.width, work.tile.count * work.width};
  if (bias) work.tile.dbias = {bias.as<float>() + at, work.tile.count};
}

void backward(const Binding& b, const LinearLossPlan& plan) {
  DeviceParts parts(&b);
  const LinearLoss start = linear_loss_of(plan, &b, parts);
  const Global<float> dx = output(b.outputs[Out::kDx]);
  launch(clear, one_thread_each(dx.size()), dx);
  each_tile(
      b, plan, start, [](std::size_t, const LinearLoss&) {},
      [&](std::size_t p, LinearLoss work, bool is_words, std::int64_t at) {
        const std::int64_t n = work.tile.count;
        place_gradients(work, b, is_words, at);
        const Global<const float> lse(
            b.inputs[In::kLse].as<const float>() + std::int64_t(p) * plan.rows, plan.rows);
        launch(differentiate_logits, one_thread_each(plan.rows * n), work, lse,
               input(b.inputs[In::kDsum]));
        launch(tile_product<RowGradient>, tile_grid(plan.rows, plan.width),
               RowGradient{work, dx, plan.width});
        launch(tile_product<ClassGradient>, tile_grid(n, plan.width),
               ClassGradient{work, plan.width});
        if (work.tile.dbias) launch(add_rows, one_thread_each(n), work);
      });
}

}  // namespace

Prepared prepare_linear_cross_entropy_backward(const NodeContext& context) {
  const LinearLossPlan plan(context);
  if (!plan.fits_cutoffs()) return refuse("takes at most 16 cut-offs");
  DeviceParts parts(nullptr);
  linear_loss_of(plan, nullptr, parts);
  return kernel_of([plan](const Binding& b) { backward(b, plan); }, parts.bytes());
}

}  // namespace keel::cuda
