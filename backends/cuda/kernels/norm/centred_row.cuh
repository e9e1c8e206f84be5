// The statistics of a row that is centred: its mean and the scale that it is divided by.
#pragma once

#include "backends/cuda/kernels/norm/row.cuh"
#include "src/ops/norm/layer_norm.h"

namespace keel::cuda {

// What a kernel needs of NormStatistic.
struct Statistic {
  double eps;
  bool unbiased, eps_outside;

  __device__ double divisor(std::int64_t n) const { return double(n - (unbiased ? 1 : 0)); }
  // Of a sum of squares over n elements.
  __device__ float rstd(double squares, std::int64_t n) const {
    const double variance = squares / divisor(n);
    return float(eps_outside ? 1 / (sqrt(variance) + eps) : 1 / sqrt(variance + eps));
  }
  // s / (s - eps): what an eps outside the root adds to ds/dx; 0 on a constant row.
  __device__ float outside_factor(float rstd) const {
    if (!eps_outside) return 1;
    const double deviation = 1 / double(rstd) - eps;
    return deviation > 0 ? float(1 / (rstd * deviation)) : 0;
  }
};

inline Statistic device_statistic(const NormStatistic& s) {
  return {s.eps, s.unbiased, s.eps_outside};
}

// The mean in two parts, for a float cannot hold it when it is far larger than the deviation:
// x - mean is (x - coarse) - fine.
struct Mean {
  float coarse = 0, fine = 0;
  __device__ float residual(float x) const { return x - coarse - fine; }
};

// What `coarse` lacks to be the row's mean; in double where floats overflow.
template <class R>
__device__ Mean refine_mean(const R& row, std::int64_t width, float coarse) {
  const float fine =
      row.sum([=](std::int64_t, float x, auto...) { return x - coarse; }) / float(width);
  if (isfinite(fine)) return {coarse, fine};
  const double rest = row.sum([=](std::int64_t, float x, auto...) { return double(x) - coarse; });
  return {coarse, float(rest / double(width))};
}

// Taken relative to the first element, so that a constant row has exactly its value.
template <class R>
__device__ Mean row_mean(const R& row, std::int64_t width) {
  const float first = row.first();
  float offset = row.sum([=](std::int64_t, float x, auto...) { return x - first; }) / float(width);
  if (!isfinite(offset)) {
    const double sum = row.sum([=](std::int64_t, float x, auto...) { return double(x) - first; });
    offset = float(sum / double(width));
  }
  return refine_mean(row, width, first + offset);
}

// The sum of squared deviations; in double where they leave the range of a float, on either side.
template <class R>
__device__ double row_squares(const R& row, Mean mean) {
  const float squares = row.sum([=](std::int64_t, float x, auto...) {
    const float residual = mean.residual(x);
    return residual * residual;
  });
  if (squares > 0x1p-100f && isfinite(squares)) return squares;
  return row.sum([=](std::int64_t, float x, auto...) {
    const double residual = mean.residual(x);
    return residual * residual;
  });
}

}  // namespace keel::cuda
