// The density of a mixture of normal distributions of the plane: a warp has a point, a lane one
// component or a few. All is in double and in the forms that the comment of
// backends/onednn/kernels/mixture_density.cpp explains: a point has few terms.
#include <cmath>

#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/warp.cuh"
#include "src/ops/mixture_density.h"

namespace keel::cuda {
namespace {

using In = MixtureInput;
using Part = MixturePart;

constexpr int kBlock = 128;
constexpr double kLog2Pi = 1.8378770664093453, kLn2 = 0.6931471805599453;

struct Points {
  MixtureSizes sizes;
  MixtureAttrs attrs;
  Global<const float> y, points;
  Global<const std::uint8_t> mask;

  __device__ std::int64_t width() const { return 1 + Part::kCount * sizes.components; }
  __device__ bool counts(std::int64_t i) const { return !mask || mask[i] != 0; }
  __device__ std::int64_t place(std::int64_t i, int part, std::int64_t j) const {
    return i * width() + 1 + part * sizes.components + j;
  }
};

// CUDA's tanh of doubles takes ex2.approx (functions.cuh says why kernels do without); its expm1
// does not.
__device__ double tanh_by_expm1(double x) {
  const double e = expm1(-2 * fabs(x));
  return copysign(e / (2 + e), x);
}

// Component j of point i.
struct Component {
  double weight, s1, s2, r, a, b, p, q, cosh;
  bool holds1, holds2, holds_rho;

  __device__ Component(const Points& of, std::int64_t i, std::int64_t j) {
    const double hat1 = of.y[of.place(i, Part::kSigma1, j)];
    const double hat2 = of.y[of.place(i, Part::kSigma2, j)];
    const double rho = of.y[of.place(i, Part::kRho, j)];
    const double least = of.attrs.least_log_sigma, most = of.attrs.largest_rho;
    weight = of.y[of.place(i, Part::kPi, j)];
    holds1 = hat1 < least;
    holds2 = hat2 < least;
    holds_rho = fabs(rho) > most;
    s1 = holds1 ? least : hat1;
    s2 = holds2 ? least : hat2;
    r = holds_rho ? copysign(most, rho) : rho;
    a = (double(of.points[3 * i]) - of.y[of.place(i, Part::kMean1, j)]) * exp(-s1);
    b = (double(of.points[3 * i + 1]) - of.y[of.place(i, Part::kMean2, j)]) * exp(-s2);
    const double small = exp(-fabs(r)), sign = copysign(1.0, r);
    cosh = (1 / small + small) / 2;
    p = (a - sign * b) * cosh + sign * b * small;
    q = (b - sign * a) * cosh + sign * a * small;
  }
  __device__ double log_density() const {
    const double size = fabs(r), log_cosh = size + log1p(exp(-2 * size)) - kLn2;
    return -kLog2Pi - s1 - s2 + log_cosh - (p * p + b * b) / 2;
  }
};

// The sums of a warp's point, which all its lanes know.
struct PointSums {
  double weights, all;  // logs of sums of exponentials, of the weights and with the densities
  float held;
};

__device__ PointSums sums_of(const Points& of, std::int64_t i) {
  double largest = -INFINITY, largest_all = -INFINITY;
  float held = 0;
  const int lane = int(threadIdx.x) % kWarp;
  for (std::int64_t j = lane; j < of.sizes.components; j += kWarp) {
    const Component c(of, i, j);
    largest = Largest()(largest, c.weight);
    largest_all = Largest()(largest_all, c.weight + c.log_density());
    held += float(int(c.holds1) + int(c.holds2) + int(c.holds_rho));
  }
  largest = over_warp(largest, Largest());
  largest_all = over_warp(largest_all, Largest());
  double sum = 0, sum_all = 0;
  for (std::int64_t j = lane; j < of.sizes.components; j += kWarp) {
    const Component c(of, i, j);
    sum += exp(c.weight - largest);
    sum_all += exp(c.weight + c.log_density() - largest_all);
  }
  return {largest + log(over_warp(sum, Add())), largest_all + log(over_warp(sum_all, Add())),
          over_warp(held, Add())};
}

// The second bound lets the compiler take as many registers as it needs, in place of spilling some.
__global__ void __launch_bounds__(kBlock, 1)
    weigh_points(Points of, Global<float> nll, Global<float> held) {
  const std::int64_t i = grid_thread() / kWarp;
  if (i >= of.sizes.rows) return;
  const bool is_first = threadIdx.x % kWarp == 0;
  if (!of.counts(i)) {
    if (is_first) nll[i] = held[i] = 0;
    return;
  }
  const double hat = of.y[i * of.width()], pen = of.points[3 * i + 2] != 0 ? hat : -hat;
  // softplus; what is not a number stays so
  const double of_pen = (pen < 0 ? 0 : pen) + log1p(exp(-fabs(pen)));
  const PointSums sums = sums_of(of, i);
  if (!is_first) return;
  nll[i] = float(sums.weights - sums.all + of_pen);
  held[i] = sums.held;
}

__global__ void __launch_bounds__(kBlock)
    turn_points(Points of, Global<const float> dnll, Global<float> dy) {
  const std::int64_t i = grid_thread() / kWarp;
  if (i >= of.sizes.rows) return;
  const int lane = int(threadIdx.x) % kWarp;
  if (!of.counts(i)) {
    for (std::int64_t c = lane; c < of.width(); c += kWarp) dy[i * of.width() + c] = 0;
    return;
  }
  const PointSums sums = sums_of(of, i);
  const double g = dnll[i];
  // dy may lie over y: a lane writes what only it has read, once no other reads it any more.
  if (lane == 0) {
    const double pen = of.points[3 * i + 2] != 0 ? 1 : 0, hat = of.y[i * of.width()];
    dy[i * of.width()] = float(g * (pen - 1 / (1 + exp(hat))));
  }
  for (std::int64_t j = lane; j < of.sizes.components; j += kWarp) {
    const Component c(of, i, j);
    const double pi = exp(c.weight - sums.weights);
    const double gamma = g * exp(c.weight + c.log_density() - sums.all);
    const double along1 = c.p * c.cosh, along2 = c.q * c.cosh;
    const double drho = c.b * c.p / c.cosh + tanh_by_expm1(c.r) * (1 - c.p * c.p);
    dy[of.place(i, Part::kPi, j)] = float(g * pi - gamma);
    dy[of.place(i, Part::kMean1, j)] = float(-gamma * along1 * exp(-c.s1));
    dy[of.place(i, Part::kMean2, j)] = float(-gamma * along2 * exp(-c.s2));
    dy[of.place(i, Part::kSigma1, j)] = c.holds1 ? 0 : float(-gamma * (c.a * along1 - 1));
    dy[of.place(i, Part::kSigma2, j)] = c.holds2 ? 0 : float(-gamma * (c.b * along2 - 1));
    dy[of.place(i, Part::kRho, j)] = c.holds_rho ? 0 : float(-gamma * drho);
  }
}

Points points_of(const Binding& b, const MixtureSizes& sizes, const MixtureAttrs& attrs) {
  return {sizes, attrs, input(b.inputs[In::kY]), input(b.inputs[In::kPoints]),
          global<const std::uint8_t>(b.inputs[In::kMask])};
}

Grid warp_each(std::int64_t rows) { return {ceil_div(rows * kWarp, kBlock), kBlock}; }

}  // namespace

Prepared prepare_mixture_density(const NodeContext& context) {
  const MixtureSizes sizes = mixture_sizes(context.input(In::kY).shape);
  const auto attrs = context.attrs<MixtureAttrs>();
  return kernel_of([=](const Binding& b) {
    launch(weigh_points, warp_each(sizes.rows), points_of(b, sizes, attrs),
           output(b.outputs[MixtureOutput::kNll]), output(b.outputs[MixtureOutput::kHeld]));
  });
}

Prepared prepare_mixture_density_backward(const NodeContext& context) {
  const MixtureSizes sizes = mixture_sizes(context.input(In::kY).shape);
  const auto attrs = context.attrs<MixtureAttrs>();
  return kernel_of([=](const Binding& b) {
    launch(turn_points, warp_each(sizes.rows), points_of(b, sizes, attrs),
           input(b.inputs[In::kDnll]), output(b.outputs[0]));
  });
}

}  // namespace keel::cuda
