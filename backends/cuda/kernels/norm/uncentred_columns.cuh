// Column norms that subtract nothing: y and dx are linear in x, dy and per-channel factors.
#pragma once

#include "backends/cuda/kernels/norm/columns.cuh"

namespace keel::cuda {

// Sums over the kept elements of a channel, and over those left out.
struct SquareSums {
  double count, squares, padded_count, padded_squares;
};

struct UncentredTerms {
  static constexpr int kSums = 4;
  Global<const float> x;
  KeptRows kept;

  __device__ void operator()(std::int64_t i, std::int64_t row, std::int64_t,
                             double (&sums)[kSums]) const {
    const int first = kept(row) ? 0 : 2;
    sums[first] += 1;
    sums[first + 1] += double(x[i]) * x[i];
  }
};

// finish(channel, SquareSums).
template <class Finish>
struct FinishSquares {
  Finish finish;
  __device__ void operator()(std::int64_t c, const double (&s)[4]) const {
    finish(c, SquareSums{s[0], s[1], s[2], s[3]});
  }
};

// Sums of dy and of dy * x over the kept elements of a channel, and of dy * x over all others.
struct UncentredGradientSums {
  double count, dy, dy_x, padded_count, padded_dy_x;
};

struct UncentredGradientTerms {
  static constexpr int kSums = 5;
  Global<const float> x, dy;
  KeptRows kept;

  __device__ void operator()(std::int64_t i, std::int64_t row, std::int64_t,
                             double (&sums)[kSums]) const {
    const double product = double(dy[i]) * x[i];
    if (kept(row)) {
      sums[0] += 1;
      sums[1] += dy[i];
      sums[2] += product;
    } else {
      sums[3] += 1;
      sums[4] += product;
    }
  }
};

// finish(channel, UncentredGradientSums).
template <class Finish>
struct FinishUncentredGradient {
  Finish finish;
  __device__ void operator()(std::int64_t c, const double (&s)[5]) const {
    finish(c, UncentredGradientSums{s[0], s[1], s[2], s[3], s[4]});
  }
};

// y = x * scale * factor * gain + bias; 0 in rows left out. `factor` may be absent.
struct ScaleColumns {
  Global<const float> x, scale, factor, gain, bias;
  KeptRows kept;
  Global<float> y;

  struct Channel {
    float scale, factor, bias;
  };
  __device__ Channel channel(std::int64_t c) const {
    return {scale[c], factor.get(c, 1) * gain.get(c, 1), bias.get(c, 0)};
  }
  __device__ void operator()(std::int64_t i, std::int64_t row, const Channel& c) const {
    y[i] = kept(row) ? x[i] * c.scale * c.factor + c.bias : 0;
  }
};

// dx = rdx * (g - slope * x * scale), g = dy * factor * gain; 0 in rows left out. Without a slope
// dx = rdx * g.
struct ScaleColumnsGradient {
  Global<const float> x, dy, scale, rdx, factor, gain;
  Global<const double> slope;
  KeptRows kept;
  Global<float> dx;

  struct Channel {
    float scale, rdx, factor, slope;
  };
  __device__ Channel channel(std::int64_t c) const {
    return {scale[c], rdx[c], factor.get(c, 1) * gain.get(c, 1), float(slope.get(c, 0))};
  }
  __device__ void operator()(std::int64_t i, std::int64_t row, const Channel& c) const {
    if (!kept(row)) {
      dx[i] = 0;
    } else if (slope) {
      dx[i] = c.rdx * (dy[i] * c.factor - c.slope * (x[i] * c.scale));
    } else {
      dx[i] = c.rdx * (dy[i] * c.factor);
    }
  }
};

}  // namespace keel::cuda
