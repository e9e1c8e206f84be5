// The mean of a row or a channel, and how an element is taken to its xhat.
#pragma once

#include "backends/cuda/kernels/data.cuh"

namespace keel::cuda {

// A mean in two parts, because one float cannot hold a mean far larger than the deviation:
// x - mean is (x - coarse) - fine.
struct Mean {
  float coarse = 0, fine = 0;
  __device__ float residual(float x) const { return x - coarse - fine; }
};

// A factor of x and of the mean before they are subtracted: where the mean is as large as this, but
// not where it is smaller, the difference may be too large for a float. The product is exact.
__device__ inline float part_of(float mean) { return fabsf(mean) >= 0x1p100f ? 0.25f : 1; }

// (x - mean) * rstd.
struct Xhat {
  float part, coarse, fine, rstd;
  __device__ Xhat(Mean mean, float of_row)
      : part(part_of(mean.coarse)),
        coarse(mean.coarse * part),
        fine(mean.fine * part),
        rstd(of_row / part) {}
  __device__ float operator()(float x) const { return (x * part - coarse - fine) * rstd; }
  // rstd as it was saved, for kernels that have no register left to keep it in.
  __device__ float saved_rstd() const { return rstd * part; }
};

}  // namespace keel::cuda
