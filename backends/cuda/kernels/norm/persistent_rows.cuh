// The backward of rows with gain and bias in one sweep: x and dy are read once, for dx, dgain and
// dbias together. The number of blocks is fixed: one for each multiprocessor of an H200. Blocks
// process chunks of neighbouring rows and keep a sum for every column in registers; a small second
// kernel adds the blocks' sums. The cut into chunks depends only on the rows' sizes, and so does
// the order of all additions.
#pragma once

#include <algorithm>

#include "backends/cuda/kernels/norm/centred_row.cuh"
#include "backends/cuda/kernels/norm/column_sums.cuh"
#include "src/ops/norm/sizes.h"

namespace keel::cuda {

inline constexpr int kSweepBlock = 512;            // threads
inline constexpr std::int64_t kSweepBlocks = 132;  // as many as run at once
inline constexpr int kSweepItems = 16;             // columns a thread
// The number of rows that a thread adds in float before it moves to double. The error is at most 32
// roundings, 16 eps, of the sum of the terms' sizes.
inline constexpr int kSweepRows = 32;

// Whether these rows can be swept; each row is a group of a sample.
inline bool can_sweep(const GroupSizes& s) {
  return s.inner == 1 && s.width() <= kWidestInRegisters;
}

// The number of chunks into which the samples of each group are cut. The chunks' sums stay within 1
// MiB and 64 bytes a column, or 1 / 32 of x if that is more.
inline std::int64_t sweep_chunks(const GroupSizes& s) {
  std::int64_t teams = 1;
  with_row_threads(s.width(), [&](auto threads) { teams = kSweepBlock / threads; });
  const std::int64_t columns = s.groups * s.width();
  const std::int64_t in_memory = std::max((1 << 16) / columns + 4, s.samples / 128);
  const std::int64_t most = std::min(kSweepBlocks / s.groups, in_memory);
  return std::max<std::int64_t>(1, std::min(most, ceil_div(s.samples, teams)));
}

// The number of doubles of workspace that the sweep needs.
inline std::int64_t sweep_sums(const GroupSizes& s) {
  return sweep_chunks(s) * 2 * s.groups * s.width();
}

struct Sweep {
  // Rows that are not centred have no mean, and their scale is in rstd.
  Data x, dy;
  Global<const float> gain, mean, rstd;
  Result dx;
  Global<double> partial;  // (chunks, 2, columns): sums for dgain and dbias
  Statistic statistic;
  std::int64_t samples, groups, width, chunks;
  float per_element, per_freedom;  // 1 / width; 1 over the divisor of squares
};

// Replaces sums by those over kThreads neighbouring threads. `parity` must
// alternate from call to call.
template <int kThreads, int kSums>
__device__ void over_team(float (&sums)[kSums], int parity) {
  for (float& sum : sums) sum = over_lanes < kThreads < kWarp ? kThreads : kWarp > (sum, Add());
  if constexpr (kThreads > kWarp) {
    constexpr int kWarps = kSweepBlock / kWarp, kOwn = kThreads / kWarp;
    __shared__ Shared<float, 2 * kSums * kWarps> of_warps;
    const int warp = int(threadIdx.x) / kWarp, lane = int(threadIdx.x) % kWarp;
    const int at = parity * kSums * kWarps;
    for (int s = 0; s < kSums; ++s) {
      if (lane == 0) of_warps[at + s * kWarps + warp] = sums[s];
    }
    sync_team(kThreads);
    for (int s = 0; s < kSums; ++s) {
      const int first = at + s * kWarps + warp / kOwn * kOwn;
      sums[s] = over_lanes<kOwn>(of_warps[first + lane % kOwn], Add());
    }
  }
}

// The gain along a row, in shared memory.
template <int kFours>
struct SharedAlong {
  Shared<float4, kFours>* values;
  __device__ Group4 group4(std::int64_t column, int, bool) const {
    const float4 four = (*values)[int(column) / 4];
    return {four.x, four.y, four.z, four.w};
  }
};

// The sums that a thread keeps of its columns: dy * xhat and dy.
struct SweepSums {
  float dgain[kSweepItems] = {}, dbias[kSweepItems] = {};
};

// dx = rstd * (g - mean(g) - xhat * sum(g * xhat) / N * r) with g = dy * gain; mean(g) is left
// out if rows are not centred.
template <int kThreads, bool kIsCentred, class R, class Along>
__device__ void sweep_row(const Sweep& a, const R& row, const Along& gains, int parity,
                          SweepSums& total) {
  const float mean = kIsCentred ? a.mean[row.index()] : 0, rstd = a.rstd[row.index()];
  const float factor = kIsCentred ? a.statistic.outside_factor(rstd) * a.per_freedom : 0;
  // Sums of g * z, z and g, where z = (x - mean) * rstd equals xhat except for what the saved mean
  // lacks.
  const float part = part_of(mean), coarse = mean * part, scale = rstd / part;
  float sums[kIsCentred ? 3 : 1] = {};
  row.each(
      [&](int, std::int64_t, float x, float dy, float gain) {
        const float z = (x * part - coarse) * scale, g = dy * gain;
        sums[0] += g * z;
        if constexpr (kIsCentred) sums[1] += z, sums[2] += g;
      },
      gains);
  over_team<kThreads>(sums, parity);
  float fine = 0, mean_g = 0, slope = sums[0] * a.per_element;
  if constexpr (kIsCentred) {
    fine = sums[1] * a.per_element, mean_g = sums[2] * a.per_element;
    slope = (sums[0] - mean_g * sums[1]) * factor;
  }
  const auto xhat = [=](float x) { return (x * part - coarse) * scale - fine; };
  row.store(
      a.dx,
      [=](std::int64_t, float x, float dy, float gain) {
        return rstd * (dy * gain - mean_g - xhat(x) * slope);
      },
      gains);
  row.each([&](int item, std::int64_t, float x, float dy) {
    total.dgain[item] += dy * xhat(x);
    total.dbias[item] += dy;
  });
}

// Prefetches a row into L2 while the row before it is processed. Each thread of a team prefetches
// one cache line: half of the threads take x and the other half dy.
template <int kThreads>
__device__ void prefetch_row(const Sweep& a, std::int64_t row) {
  constexpr int kLine = 32;  // floats
  const int rank = int(threadIdx.x) % kThreads, column = rank / 2 * kLine;
  if (column < a.width) (rank % 2 == 0 ? a.x : a.dy).prefetch(row * a.width + column);
}

// Adds the block's sums of every column of a row, in the order of its teams, to `partial` from
// `first` on; or stores them there if `puts`.
template <int kThreads>
__device__ void add_up(const float (&sums)[kSweepItems], Global<double> partial, std::int64_t first,
                       std::int64_t width, bool puts) {
  constexpr int kTeams = kSweepBlock / kThreads, kColumns = 4 * kThreads;
  constexpr int kStride = kSweepBlock + 8;  // so that a warp's reads lie in 32 banks
  __shared__ Shared<float, 4 * kStride> values;
  const int thread = int(threadIdx.x);
  for (int four = 0; four < kSweepItems / 4; ++four) {
    const int before = four * kColumns;
    __syncthreads();  // the values of the call before have been read
    for (int i = 0; i < 4; ++i) values[i * kStride + thread] = sums[4 * four + i];
    __syncthreads();
    for (int column = thread; column < kColumns && before + column < width; column += kSweepBlock) {
      double& to = partial[first + before + column];
      double total = puts ? 0 : to;
      for (int team = 0; team < kTeams; ++team) {
        total += values[column % 4 * kStride + team * kThreads + column / 4];
      }
      to = total;
    }
  }
}

// A block processes a chunk of one group's rows; its teams of kThreads take the rows in step.
template <int kThreads, bool kIsCentred>
__global__ void __launch_bounds__(kSweepBlock, 1) sweep_rows(Sweep a) {
  constexpr int kFours = kThreads * kSweepItems / 4, kTeams = kSweepBlock / kThreads;
  __shared__ Shared<float4, kFours> gain;
  const std::int64_t group = blockIdx.x % a.groups, chunk = blockIdx.x / a.groups;
  const AlongRow gains{a.gain, 1, group * a.width};
  for (int four = int(threadIdx.x); 4 * four < a.width; four += kSweepBlock) {
    const int left = int(a.width) - 4 * four;
    const Group4 group4 = gains.group4(4 * four, left < 4 ? left : 4, a.width % 4 == 0);
    gain[four] = make_float4(group4.at[0], group4.at[1], group4.at[2], group4.at[3]);
  }
  __syncthreads();
  // The teams of a warp continue together, as long as the first of them has a row.
  const int team = int(threadIdx.x) / kThreads;
  const int behind = kThreads < kWarp ? team % (kWarp / kThreads) : 0;
  const std::int64_t first = a.samples * chunk / a.chunks,
                     last = a.samples * (chunk + 1) / a.chunks;
  std::int64_t begin = first;
  do {
    SweepSums sums;
    int parity = 0;
    for (int step = 0; step < kSweepRows; ++step) {
      const std::int64_t sample = begin + step * kTeams + team;
      if (sample - behind >= last) break;
      const Row<kThreads, kSweepItems, 2> row({a.x, a.dy}, sample * a.groups + group, a.width,
                                              sample < last);
      const std::int64_t next = sample + kTeams;
      if (next < last) prefetch_row<kThreads>(a, next * a.groups + group);
      sweep_row<kThreads, kIsCentred>(a, row, SharedAlong<kFours>{&gain}, parity, sums);
      parity = 1 - parity;
    }
    const std::int64_t columns = a.groups * a.width, at = 2 * chunk * columns + group * a.width;
    add_up<kThreads>(sums.dgain, a.partial, at, a.width, begin == first);
    add_up<kThreads>(sums.dbias, a.partial, at + columns, a.width, begin == first);
    begin += kSweepRows * kTeams;
  } while (begin < last);
}

// The tensors of a backward of rows with gain and bias; dgain and dbias may be absent.
struct SweepTensors {
  Data x, dy;
  Global<const float> gain, mean, rstd;
  Result dx;
  Global<float> dgain, dbias;
};

template <bool kIsCentred>
void run_sweep(const Binding& b, const SweepTensors& t, const GroupSizes& s,
               const Statistic& statistic) {
  const double freedom = variance_count(s.width(), statistic.unbiased);
  const Sweep args{t.x,
                   t.dy,
                   t.gain,
                   t.mean,
                   t.rstd,
                   t.dx,
                   workspace<double>(b, sweep_sums(s)),
                   statistic,
                   s.samples,
                   s.groups,
                   s.width(),
                   sweep_chunks(s),
                   float(1 / double(s.width())),
                   float(1 / freedom)};
  with_row_threads(args.width, [&]<int kThreads>(std::integral_constant<int, kThreads>) {
    launch(sweep_rows<kThreads, kIsCentred>, {args.chunks * args.groups, kSweepBlock}, args);
  });
  finish_chunks<PlainSums, 2>(args.groups * args.width, args.chunks, args.partial,
                              StoreSums<2>{{t.dgain, t.dbias}});
}

}  // namespace keel::cuda
