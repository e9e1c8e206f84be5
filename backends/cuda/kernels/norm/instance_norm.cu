// Instance norm of sequences: a feature of one sample over its steps. Samples and channels together
// are a sequence's columns: a block takes 32 neighbouring channels of one sample, a warp every
// eighth step.
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/norm/columns.cuh"
#include "src/ops/norm/instance_norm.h"

namespace keel::cuda {
namespace {

// The channel, sample and first step that a thread works on.
struct Place {
  SequenceSizes sizes;
  std::int64_t sample, channel;
  int lane, warp;

  __device__ explicit Place(const SequenceSizes& s) : sizes(s) {
    const std::int64_t strips = (s.channels + kColumnsABlock - 1) / kColumnsABlock;
    sample = blockIdx.x / strips;
    lane = int(threadIdx.x) % kColumnsABlock;
    warp = int(threadIdx.x) / kColumnsABlock;
    channel = blockIdx.x % strips * kColumnsABlock + lane;
  }
  __device__ bool exists() const { return channel < sizes.channels; }
  __device__ std::int64_t group() const { return sample * sizes.channels + channel; }

  // f(element) for every kept step of this thread.
  template <class F>
  __device__ void each(KeptRows kept, F f) const {
    if (!exists()) return;
    for (std::int64_t t = warp; t < sizes.steps; t += kRowsAtOnce) {
      const std::int64_t row = sample * sizes.steps + t;
      if (kept(row)) f(row * sizes.channels + channel);
    }
  }
  // Writes 0 to the steps left out.
  __device__ void clear(KeptRows kept, Global<float> y) const {
    if (!exists()) return;
    for (std::int64_t t = warp; t < sizes.steps; t += kRowsAtOnce) {
      const std::int64_t row = sample * sizes.steps + t;
      if (!kept(row)) y[row * sizes.channels + channel] = 0;
    }
  }
};

// The sum over the block's warps of a lane's values; every warp gets it.
__device__ double over_warps(double value, const Place& place) {
  __shared__ Shared<double, kColumnBlock> values;
  __syncthreads();  // the values of the call before have been read
  values[int(threadIdx.x)] = value;
  __syncthreads();
  double total = 0;
  for (int w = 0; w < kRowsAtOnce; ++w) total += values[w * kColumnsABlock + place.lane];
  return total;
}

// The sum over a channel's kept steps of f(element).
template <class F>
__device__ double sum(const Place& place, KeptRows kept, F f) {
  double total = 0;
  place.each(kept, [&](std::int64_t i) { total += f(i); });
  return over_warps(total, place);
}

struct Forward {
  SequenceSizes sizes;
  Global<const float> x, gain, bias;
  KeptRows kept;
  Global<float> y, mean, rstd;
  double eps;
};

__global__ void __launch_bounds__(kColumnBlock, 2) forward(Forward a) {
  const Place place(a.sizes);
  const double count = sum(place, a.kept, [](std::int64_t) { return 1.0; });
  const double some = count > 0 ? count : 1;
  const double mean = sum(place, a.kept, [&](std::int64_t i) { return double(a.x[i]); }) / some;
  const double squares = sum(place, a.kept, [&](std::int64_t i) {
    const double residual = a.x[i] - mean;
    return residual * residual;
  });
  if (!place.exists()) return;
  const float rstd = float(1 / sqrt(squares / some + a.eps));
  const float coarse = float(mean), fine = float(mean - coarse);
  const float gain = a.gain.get(place.channel, 1), bias = a.bias.get(place.channel, 0);
  place.each(a.kept,
             [&](std::int64_t i) { a.y[i] = (a.x[i] - coarse - fine) * rstd * gain + bias; });
  place.clear(a.kept, a.y);
  if (place.warp > 0) return;
  a.mean[place.group()] = coarse;
  a.rstd[place.group()] = rstd;
}

struct Backward {
  SequenceSizes sizes;
  Global<const float> x, dy, gain, mean, rstd;
  KeptRows kept;
  Global<float> dx;
  Global<double> dgain, dbias;  // what each sample adds to them: (samples, channels)
};

__global__ void __launch_bounds__(kColumnBlock, 2) backward(Backward a) {
  const Place place(a.sizes);
  const double coarse = place.exists() ? a.mean[place.group()] : 0;
  const double count = sum(place, a.kept, [](std::int64_t) { return 1.0; });
  const double some = count > 0 ? count : 1;
  const double fine = sum(place, a.kept, [&](std::int64_t i) { return a.x[i] - coarse; }) / some;
  const double total = sum(place, a.kept, [&](std::int64_t i) { return double(a.dy[i]); });
  const double products =
      sum(place, a.kept, [&](std::int64_t i) { return a.dy[i] * (a.x[i] - coarse - fine); });
  if (!place.exists()) return;
  const float rstd = a.rstd[place.group()], gain = a.gain.get(place.channel, 1);
  if (place.warp == 0) {
    a.dgain[place.group()] = products * rstd;
    a.dbias[place.group()] = total;
  }
  const float mean_g = float(gain * total / some), slope = float(gain * products * rstd / some);
  place.each(a.kept, [&](std::int64_t i) {
    const float xhat = float(a.x[i] - coarse - fine) * rstd;
    a.dx[i] = rstd * (a.dy[i] * gain - mean_g - xhat * slope);
  });
  place.clear(a.kept, a.dx);
}

// The samples' shares of dgain and dbias.
struct Shares {
  static constexpr int kSums = 2;
  Global<const double> dgain, dbias;
  __device__ void operator()(std::int64_t i, std::int64_t, std::int64_t,
                             double (&sums)[kSums]) const {
    sums[0] += dgain[i];
    sums[1] += dbias[i];
  }
};

Grid grid_of(const SequenceSizes& s) {
  return {s.samples * ceil_div(s.channels, kColumnsABlock), kColumnBlock};
}

// The shares as a (samples, channels) matrix.
ColumnSizes shares_of(const SequenceSizes& s) { return {s.samples, s.channels, 1}; }
std::int64_t share_bytes(const SequenceSizes& s) {
  return aligned_bytes(s.samples * s.channels * std::int64_t{sizeof(double)});
}

void run_backward(const Binding& b, const SequenceSizes& sizes) {
  const std::int64_t count = sizes.samples * sizes.channels;
  const auto dgain = workspace<double>(b, count);
  const auto dbias = workspace<double>(b, count, share_bytes(sizes));
  launch(backward, grid_of(sizes),
         Backward{sizes, input(b.inputs[0]), input(b.inputs[4]), input(b.inputs[1]),
                  input(b.inputs[2]), input(b.inputs[3]), kept_rows(b.inputs[5]),
                  output(b.outputs[0]), dgain, dbias});
  column_sums(
      shares_of(sizes), Shares{dgain, dbias},
      workspace<double>(b, partial_sums(shares_of(sizes), Shares::kSums), 2 * share_bytes(sizes)),
      StoreSums<2>{{output(b.outputs[1]), output(b.outputs[2])}});
}

}  // namespace

Prepared prepare_instance_norm(const NodeContext& context) {
  const SequenceSizes sizes = sequence_sizes(context.input(0).shape);
  const double eps = context.attrs<InstanceNormAttrs>().eps;
  return kernel_of([=](const Binding& b) {
    launch(forward, grid_of(sizes),
           Forward{sizes, input(b.inputs[0]), input(b.inputs[1]), input(b.inputs[2]),
                   kept_rows(b.inputs[3]), output(b.outputs[0]), output(b.outputs[1]),
                   output(b.outputs[2]), eps});
  });
}

Prepared prepare_instance_norm_backward(const NodeContext& context) {
  const SequenceSizes sizes = sequence_sizes(context.input(0).shape);
  const std::int64_t partial = partial_sums(shares_of(sizes), Shares::kSums);
  return kernel_of([=](const Binding& b) { run_backward(b, sizes); },
                   2 * share_bytes(sizes) + partial * std::int64_t{sizeof(double)});
}

}  // namespace keel::cuda
