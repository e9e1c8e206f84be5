// Instance norm of sequences normalizes a feature of one sample over its steps. A block takes 32
// neighbouring channels of one sample, and each of its eight warps every eighth step.
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/norm/columns.cuh"
#include "backends/cuda/kernels/norm/mean.cuh"
#include "src/ops/norm/instance_norm.h"

namespace keel::cuda {
namespace {

using In = InstanceNormInput;
using Out = InstanceNormOutput;
using BackIn = InstanceNormBackwardInput;
using BackOut = InstanceNormGradient;

// How many neighbouring channels a block takes, and how many steps at once.
constexpr int kColumnsABlock = kWarp, kRowsAtOnce = kColumnBlock / kColumnsABlock;

// The sum over the block's warps of a lane's values; every warp gets it.
__device__ double over_warps(double value) {
  __shared__ Shared<double, kColumnBlock> values;
  __syncthreads();  // the values of the call before have been read
  values[int(threadIdx.x)] = value;
  __syncthreads();
  double total = 0;
  for (int w = 0; w < kRowsAtOnce; ++w) {
    total += values[w * kColumnsABlock + int(threadIdx.x) % kColumnsABlock];
  }
  return total;
}

// One channel of a sample, of which every eighth step is this thread's. kItems of them stay in
// registers and are read once; with kItems 0 they are read again for every pass.
template <int kItems, int kTensors>
class Steps {
 public:
  __device__ Steps(const SequenceSizes& s, const Data (&tensors)[kTensors], KeptRows kept)
      : sizes_(s), kept_(kept) {
    const std::int64_t strips = (s.channels + kColumnsABlock - 1) / kColumnsABlock;
    sample_ = blockIdx.x / strips;
    channel_ = blockIdx.x % strips * kColumnsABlock + int(threadIdx.x) % kColumnsABlock;
    for (int t = 0; t < kTensors; ++t) tensors_[t] = tensors[t];
    for (int i = 0; i < kItems; ++i) {
      const std::int64_t step = warp() + i * kRowsAtOnce;
      if (!exists() || step >= s.steps || !kept(row(step))) continue;
      present_ |= 1u << i;
      for (int t = 0; t < kTensors; ++t) items_[t][i] = tensors[t].fetch(element(step));
    }
    for (int i = 0; i < kItems; ++i) {
      if (!(present_ >> i & 1)) continue;
      for (int t = 0; t < kTensors; ++t) items_[t][i] = tensors[t].widened(items_[t][i]);
    }
  }

  __device__ bool exists() const { return channel_ < sizes_.channels; }
  __device__ std::int64_t channel() const { return channel_; }
  __device__ std::int64_t group() const { return sample_ * sizes_.channels + channel_; }
  __device__ int warp() const { return int(threadIdx.x) / kColumnsABlock; }

  // The sum over the channel's kept steps of f(value of each tensor).
  template <class F>
  __device__ double sum(F f) const {
    double total = 0;
    each([&](std::int64_t, auto... values) { total += f(values...); });
    return over_warps(total);
  }

  // Stores y = f(value of each tensor) at every kept step, and 0 at the others.
  template <class F>
  __device__ void store(Result y, F f) const {
    for (std::int64_t step = warp(); step < sizes_.steps; step += kRowsAtOnce) {
      if (!kept_(row(step))) y.store(element(step), 0);
    }
    each([&](std::int64_t at, auto... values) { y.store(at, f(values...)); });
  }

 private:
  __device__ std::int64_t row(std::int64_t step) const { return sample_ * sizes_.steps + step; }
  __device__ std::int64_t element(std::int64_t step) const {
    return row(step) * sizes_.channels + channel_;
  }

  template <class F>
  __device__ void each(F f) const {
    for (int i = 0; i < kItems; ++i) {
      if (!(present_ >> i & 1)) continue;
      const std::int64_t at = element(warp() + i * kRowsAtOnce);
      if constexpr (kTensors == 1) f(at, items_[0][i]);
      if constexpr (kTensors == 2) f(at, items_[0][i], items_[1][i]);
    }
    if constexpr (kItems == 0) {
      for (std::int64_t step = warp(); step < sizes_.steps && exists(); step += kRowsAtOnce) {
        const std::int64_t at = element(step);
        if (!kept_(row(step))) continue;
        if constexpr (kTensors == 1) f(at, tensors_[0][at]);
        if constexpr (kTensors == 2) f(at, tensors_[0][at], tensors_[1][at]);
      }
    }
  }

  SequenceSizes sizes_;
  KeptRows kept_;
  std::int64_t sample_, channel_;
  Data tensors_[kTensors];
  unsigned present_ = 0;
  float items_[kTensors][kItems > 0 ? kItems : 1];
};

struct Forward {
  SequenceSizes sizes;
  Data x;
  Global<const float> gain, bias;
  KeptRows kept;
  Result y;
  Global<float> mean, rstd;
  double eps;
};

template <int kItems>
__global__ void __launch_bounds__(kColumnBlock, 2) forward(Forward a) {
  const Steps<kItems, 1> steps(a.sizes, {a.x}, a.kept);
  const double count = steps.sum([](float) { return 1.0; });
  const double some = count > 0 ? count : 1;
  const double mean = steps.sum([](float x) { return double(x); }) / some;
  const double squares = steps.sum([=](float x) {
    const double residual = x - mean;
    return residual * residual;
  });
  if (!steps.exists()) return;
  const float rstd = float(1 / sqrt(squares / some + a.eps));
  const float coarse = float(mean);
  const Xhat xhat({coarse, float(mean - coarse)}, rstd);
  const float gain = a.gain.get(steps.channel(), 1), bias = a.bias.get(steps.channel(), 0);
  steps.store(a.y, [=](float x) { return xhat(x) * gain + bias; });
  if (steps.warp() > 0) return;
  a.mean[steps.group()] = coarse;
  a.rstd[steps.group()] = rstd;
}

struct Backward {
  SequenceSizes sizes;
  Data x, dy;
  Global<const float> gain, mean, rstd;
  KeptRows kept;
  Result dx;
  Global<float> dgain, dbias;  // what each sample adds to them: (samples, channels)
};

template <int kItems>
__global__ void __launch_bounds__(kColumnBlock, 2) backward(Backward a) {
  const Steps<kItems, 2> steps(a.sizes, {a.x, a.dy}, a.kept);
  const double coarse = steps.exists() ? a.mean[steps.group()] : 0;
  const double count = steps.sum([](float, float) { return 1.0; });
  const double some = count > 0 ? count : 1;
  const double fine = steps.sum([=](float x, float) { return x - coarse; }) / some;
  const double total = steps.sum([](float, float dy) { return double(dy); });
  const double products = steps.sum([=](float x, float dy) { return dy * (x - coarse - fine); });
  if (!steps.exists()) return;
  const float rstd = a.rstd[steps.group()], gain = a.gain.get(steps.channel(), 1);
  if (steps.warp() == 0) {
    a.dgain[steps.group()] = float(products * rstd);
    a.dbias[steps.group()] = float(total);
  }
  const float mean_g = float(gain * total / some), slope = float(gain * products * rstd / some),
              part = part_of(float(coarse)), scale = rstd / part;
  steps.store(a.dx, [=](float x, float dy) {
    const float xhat = float((x - coarse - fine) * part) * scale;
    return rstd * (dy * gain - mean_g - xhat * slope);
  });
}

// Whether registers hold the steps: 16 of each thread.
bool fits(const SequenceSizes& s) { return s.steps <= 16 * kRowsAtOnce; }

// Adds up the samples' shares of dgain and dbias.
struct Shares : PlainSums {
  static constexpr int kTensors = 2, kSums = 2;
  Global<const float> tensors[kTensors];  // of dgain, of dbias
  __device__ void operator()(const float (&of)[kTensors], const TileStep&, const Channel&,
                             double (&sums)[kSums]) const {
    sums[0] += of[0];
    sums[1] += of[1];
  }
};

Grid grid_of(const SequenceSizes& s) {
  return {s.samples * ceil_div(s.channels, kColumnsABlock), kColumnBlock};
}

// The shares of each of the two are a (samples, channels) matrix.
ColumnSizes shares_of(const SequenceSizes& s) { return {s.samples, s.channels, 1}; }
std::int64_t share_bytes(const SequenceSizes& s) {
  return aligned_bytes(s.samples * s.channels * std::int64_t{sizeof(float)});
}

void run_backward(const Binding& b, const SequenceSizes& sizes) {
  const std::int64_t count = sizes.samples * sizes.channels;
  const auto dgain = workspace(b, count), dbias = workspace(b, count, share_bytes(sizes));
  launch(fits(sizes) ? backward<16> : backward<0>, grid_of(sizes),
         Backward{sizes, Data(b.inputs[BackIn::kX]), Data(b.inputs[BackIn::kDy]),
                  input(b.inputs[BackIn::kGain]), input(b.inputs[BackIn::kMean]),
                  input(b.inputs[BackIn::kRstd]), kept_rows(b.inputs[BackIn::kMask]),
                  Result(b.outputs[BackOut::kDx]), dgain, dbias});
  column_sums(
      shares_of(sizes), Shares{{}, {dgain, dbias}},
      workspace<double>(b, partial_sums(shares_of(sizes), Shares::kSums), 2 * share_bytes(sizes)),
      StoreSums<2>{{output(b.outputs[BackOut::kDgain]), output(b.outputs[BackOut::kDbias])}});
}

}  // namespace

Prepared prepare_instance_norm(const NodeContext& context) {
  const SequenceSizes sizes = sequence_sizes(context.input(In::kX).shape);
  const double eps = context.attrs<InstanceNormAttrs>().eps;
  return kernel_of([=](const Binding& b) {
    launch(fits(sizes) ? forward<16> : forward<0>, grid_of(sizes),
           Forward{sizes, Data(b.inputs[In::kX]), input(b.inputs[In::kGain]),
                   input(b.inputs[In::kBias]), kept_rows(b.inputs[In::kMask]),
                   Result(b.outputs[Out::kY]), output(b.outputs[Out::kMean]),
                   output(b.outputs[Out::kRstd]), eps});
  });
}

Prepared prepare_instance_norm_backward(const NodeContext& context) {
  const SequenceSizes sizes = sequence_sizes(context.input(BackIn::kX).shape);
  const std::int64_t partial = partial_sums(shares_of(sizes), Shares::kSums);
  return kernel_of([=](const Binding& b) { run_backward(b, sizes); },
                   2 * share_bytes(sizes) + partial * std::int64_t{sizeof(double)});
}

}  // namespace keel::cuda
