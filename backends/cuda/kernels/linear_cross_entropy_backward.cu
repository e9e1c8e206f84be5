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

// The values that turn logits into their gradient.
struct Gradients {
  Global<const float> lse, dsum;
  Global<BF16> narrow;  // of P: absent where nothing reads it
};

// P takes the place of the logits, with a copy in bf16 if there is memory for one. A block has a
// row.
__global__ void differentiate_logits(LinearLoss of, Gradients with) {
  const std::int64_t r = blockIdx.x;
  if (r >= of.row_count()) return;
  const std::int64_t hot = of.part.hot[r] - of.tile.first;
  const bool counts = !of.ignores(r);
  const float gradient = with.dsum[0], share = float(of.smoothing / double(of.classes));
  const float own = float((1 - of.smoothing) * gradient), lse = with.lse[of.part.rows[r]];
  for (std::int64_t c = threadIdx.x; c < of.tile.count; c += kRowBlock) {
    float p = 0;
    if (counts) p = gradient * (exponential(of.logit(r, c) - lse) - share) - (c == hot ? own : 0);
    of.logit(r, c) = p;
    if (with.narrow) with.narrow[r * of.tile.count + c] = BF16(p);
  }
}

// P as a factor of products.
__device__ float factor_of(const LinearLoss& of, std::int64_t r, std::int64_t c) {
  const float p = of.logit(r, c);
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

// db: the sums of P over rows. A block has a class for each lane of a warp. Its warps add up rows
// that lie that many apart, and then the first one their sums.
constexpr int kSumStrips = 32;
__global__ void __launch_bounds__(kSumStrips* kWarp) add_rows(LinearLoss of) {
  __shared__ Shared<double, kSumStrips * kWarp> sums;
  const int thread = int(threadIdx.x), strip = thread / kWarp;
  const std::int64_t c = std::int64_t{blockIdx.x} * kWarp + thread % kWarp, rows = of.row_count();
  double sum = 0;
  if (c < of.tile.count) {
    for (std::int64_t r = strip; r < rows; r += kSumStrips) sum += double(of.logit(r, c));
  }
  sums[thread] = sum;
  __syncthreads();
  if (strip > 0 || c >= of.tile.count) return;
  for (int s = 1; s < kSumStrips; ++s) sum += sums[s * kWarp + thread];
  of.tile.dbias[c] = float(sum);
}

// x without the rows that do not count, whose numbers no gradient may depend on.
template <class T>
__global__ void copy_counted(LinearLoss of, Global<const T> x, Global<T> counted) {
  for (std::int64_t e = grid_thread(); e < x.size(); e += grid_threads()) {
    counted[e] = of.ignores(e / of.width) ? T(0.0f) : x[e];
  }
}

// Where the gradients of a tile belong.
void place_gradients(LinearLoss& work, const Binding& b, const TilePlace& place) {
  const auto [part, is_words, at, products] = place;
  const TensorRef& rows = b.outputs[is_words ? Out::kDtable : Out::kDclusters];
  const TensorRef& bias = b.outputs[is_words ? Out::kDbias : Out::kDclusterBias];
  work.tile.dclasses = {rows.as<float>() + at * work.width, work.tile.count * work.width};
  if (bias) work.tile.dbias = {bias.as<float>() + at, work.tile.count};
}

struct BackwardWork {
  DeviceParts parts;
  LinearLoss work;
  Global<BF16> narrow;        // P of a tile of the head
  Global<std::byte> counted;  // the rows of x that count

  BackwardWork(const LinearLossPlan& plan, bool is_narrow, const Binding* b)
      : parts(b), work(linear_loss_of(plan, b, parts)) {
    const DType dtype = is_narrow ? DType::kBF16 : DType::kF32;
    if (is_narrow) narrow = parts.take<BF16>(plan.tile_logits);
    counted = parts.take<std::byte>(plan.rows * plan.width * size_of(dtype));
  }
  template <class T>
  void copy_x(const TensorRef& x) const {
    launch(copy_counted<T>, one_thread_each(x.elements()), work, global<const T>(x),
           Global<T>(reinterpret_cast<T*>(counted.data()), x.elements()));
  }
};

// The gradients of a tile of the head, the first of which has dx to itself.
void multiply_head(const LinearLoss& work, const BackwardWork& w, const TilePlace& place,
                   Global<float> dx) {
  const void* p = work.is_narrow ? static_cast<const void*>(w.narrow.data()) : work.z.data();
  place.products->dx(
      {p, work.tile.classes.data(), nullptr, dx.data(), work.product_memory, work.tile.first > 0});
  place.products->dclasses(
      {p, w.counted.data(), nullptr, work.tile.dclasses.data(), work.product_memory});
}

void backward(const Binding& b, const LinearLossPlan& plan) {
  const TensorRef& x = b.inputs[In::kX];
  const BackwardWork w(plan, is_narrow(x), &b);
  const Global<float> dx = output(b.outputs[Out::kDx]);
  each_tile(
      b, plan, w.work,
      [&](std::size_t p, const LinearLoss&) {
        if (p == 0) is_narrow(x) ? w.copy_x<BF16>(x) : w.copy_x<float>(x);
      },
      [&](const TilePlace& place, LinearLoss work) {
        const std::int64_t n = work.tile.count;
        const bool is_head = place.part == 0;
        place_gradients(work, b, place);
        const Global<const float> lse(
            b.inputs[In::kLse].as<const float>() + std::int64_t(place.part) * plan.rows, plan.rows);
        launch(differentiate_logits, {plan.rows, kRowBlock}, work,
               Gradients{lse, input(b.inputs[In::kDsum]), is_head ? w.narrow : Global<BF16>()});
        if (is_head) {
          multiply_head(work, w, place, dx);
        } else {
          launch(tile_product<RowGradient>, tile_grid(plan.rows, plan.width),
                 RowGradient{work, dx, plan.width});
          launch(tile_product<ClassGradient>, tile_grid(n, plan.width),
                 ClassGradient{work, plan.width});
        }
        if (work.tile.dbias) launch(add_rows, {ceil_div(n, kWarp), kSumStrips * kWarp}, work);
      });
}

}  // namespace

Prepared prepare_linear_cross_entropy_backward(const NodeContext& context) {
  LinearLossPlan plan(context);
  if (!plan.fits_cutoffs()) return refuse("takes at most 16 cut-offs");
  plan.plan_products(context, true);
  const bool is_narrow = context.input(In::kX).dtype == DType::kBF16;
  return kernel_of([plan](const Binding& b) { backward(b, plan); },
                   BackwardWork(plan, is_narrow, nullptr).parts.bytes());
}

}  // namespace keel::cuda
