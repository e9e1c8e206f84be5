// Column norms that subtract the batch's mean: its moments, y, and the sums of the backward.
#pragma once

#include "backends/cuda/kernels/norm/columns.cuh"

namespace keel::cuda {

// The kept elements of a channel: how many, their mean, and the sum of squares about it.
struct Moments {
  double count, mean, squares;
};

struct MeanTerms {
  static constexpr int kSums = 2;
  Global<const float> x;
  KeptRows kept;

  __device__ void operator()(std::int64_t i, std::int64_t row, std::int64_t,
                             double (&sums)[kSums]) const {
    if (!kept(row)) return;
    sums[0] += x[i];
    sums[1] += 1;
  }
};

struct StoreMean {
  Global<double> mean, count;
  __device__ void operator()(std::int64_t c, const double (&sums)[2]) const {
    mean[c] = sums[0] / (sums[1] > 0 ? sums[1] : 1);
    count[c] = sums[1];
  }
};

struct SquareTerms {
  static constexpr int kSums = 1;
  Global<const float> x;
  KeptRows kept;
  Global<const double> mean;

  __device__ void operator()(std::int64_t i, std::int64_t row, std::int64_t c,
                             double (&sums)[kSums]) const {
    if (!kept(row)) return;
    const double residual = x[i] - mean[c];
    sums[0] += residual * residual;
  }
};

template <class Finish>
struct FinishMoments {
  Global<const double> mean, count;
  Finish finish;
  __device__ void operator()(std::int64_t c, const double (&sums)[1]) const {
    finish(c, Moments{count[c], mean[c], sums[0]});
  }
};

// Calls finish(channel, Moments) on the device. Vectors 0 and 1 of the scratch are used.
inline constexpr int kMomentSums = 2;
template <class Finish>
void column_moments(const ColumnSizes& sizes, const ColumnScratch& scratch, Global<const float> x,
                    KeptRows kept, const Finish& finish) {
  const auto mean = scratch.vector(0), count = scratch.vector(1);
  column_sums(sizes, MeanTerms{x, kept}, scratch.partial(), StoreMean{mean, count});
  column_sums(sizes, SquareTerms{x, kept, mean}, scratch.partial(),
              FinishMoments<Finish>{mean, count, finish});
}

// What a channel's backward needs: sums over its kept elements of dy and of dy times the residual
// x - mean, the true mean of the residuals, which a saved float mean leaves, and the sum of the dy
// of all rows that are left out.
struct GradientSums {
  double count, dy, dy_residual, fine, padded_dy;
};

struct GradientTerms {
  static constexpr int kSums = 5;
  Global<const float> x, dy, mean;
  KeptRows kept;

  __device__ void operator()(std::int64_t i, std::int64_t row, std::int64_t c,
                             double (&sums)[kSums]) const {
    if (!kept(row)) {
      sums[4] += dy[i];
      return;
    }
    const double residual = double(x[i]) - mean[c];
    sums[0] += dy[i];
    sums[1] += dy[i] * residual;
    sums[2] += residual;
    sums[3] += 1;
  }
};

// finish(channel, GradientSums). `is_own_mean`: the saved mean is that of these very elements.
template <class Finish>
struct FinishGradient {
  bool is_own_mean;
  Finish finish;
  __device__ void operator()(std::int64_t c, const double (&sums)[5]) const {
    const double fine = is_own_mean && sums[3] > 0 ? sums[2] / sums[3] : 0;
    finish(c, GradientSums{sums[3], sums[0], sums[1] - fine * sums[0], fine, sums[4]});
  }
};

}  // namespace keel::cuda
