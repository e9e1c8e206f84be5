// PowerNorm of tokens that are first scaled by groups, compiled once per instruction
// set. z = x * row_rstd is never stored: loops visit rows group by group, while column sums
// of a few rows stay in L1.
#if defined(KEEL_BACKENDS_ONEDNN_SIMD_SCALED_POWER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KEEL_BACKENDS_ONEDNN_SIMD_SCALED_POWER_INL_H_
#undef KEEL_BACKENDS_ONEDNN_SIMD_SCALED_POWER_INL_H_
#else
#define KEEL_BACKENDS_ONEDNN_SIMD_SCALED_POWER_INL_H_
#endif

#include <cmath>

#include "backends/onednn/kernels/norm/power_norm_plan.h"
#include "backends/onednn/simd/row_rms-inl.h"
#include "backends/onednn/simd/uncentred_columns-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {

// How rows are cut into groups; each has `width` columns.
struct RowGroups {
  std::size_t groups, width;
};

// The same group in each of kRows rows: its offset in the row's data and its index in row_rstd.
template <std::size_t kRows>
struct Group {
  std::size_t column, width, at[kRows], number[kRows];
};

// Calls body(group) for all groups of kRows rows of a strip, beginning at its row `first`.
template <std::size_t kRows, class Body>
HWY_INLINE void for_groups_of_rows(const Strip& strip, std::size_t first, std::size_t stride,
                                   const RowGroups& sizes, const Body& body) {
  for (std::size_t k = 0; k < sizes.groups; ++k) {
    Group<kRows> group{k * sizes.width, sizes.width, {}, {}};
    for (std::size_t r = 0; r < kRows; ++r) {
      const std::size_t offset = strip.offsets[first + r];
      group.at[r] = offset + group.column;
      group.number[r] = offset / stride * sizes.groups + k;
    }
    body(group);
  }
}

// Visits the groups of all rows of a strip, two rows at a time if they fit kGroupRoom.
template <class Body>
HWY_INLINE void for_groups(const Strip& strip, std::size_t stride, const RowGroups& sizes,
                           const Body& body) {
  std::size_t row = 0;
  if (2 * sizes.width <= kGroupRoom) {
    for (; row + 2 <= strip.rows; row += 2) {
      for_groups_of_rows<2>(strip, row, stride, sizes, body);
    }
  }
  for (; row < strip.rows; ++row) for_groups_of_rows<1>(strip, row, stride, sizes, body);
}

// Prefetches into L2, because L1 is full of the current rows.
template <class T>
HWY_INLINE void prefetch_ahead(const T* p) {
  __builtin_prefetch(p + kAhead, 0, 2);
}

template <std::size_t kRows>
HWY_INLINE void prefetch(const Group<kRows>& of, const ResultRows& y) {
  for (std::size_t r = 0; r < kRows; ++r) y.prefetch(of.at[r], of.width);
}

// An optional vector with one value a column.
struct OptionalColumns {
  const float* values;
  float otherwise;
  template <class Part>
  HWY_INLINE Floats load(Part part, std::size_t c) const {
    return values ? part.load(values + c) : splat(otherwise);
  }
};

// Returns row_rstd = 1 / sqrt(mean(x^2) + eps) of a group.
template <class T>
HWY_INLINE float scale_of_group(const T* x, std::size_t width, double eps) {
  return static_cast<float>(1 /
                            std::sqrt(row_squares(x, width) / static_cast<double>(width) + eps));
}

// y = z * rstd * gain + bias; row_rstd is (rows, groups), all others except x are (channels).
template <class T>
struct ScaledForward {
  const T* x;
  const float *row_rstd, *rstd;
  OptionalColumns gain, bias;
  ResultRows y;
};

// Adds z^2 to `squares` (channels). If kWrites, also writes y.
template <bool kWrites, std::size_t kRows, class T>
HWY_INLINE void visit_group(const Group<kRows>& of, const ScaledForward<T>& in, float* squares) {
  for_lanes(of.width, [=](auto part, std::size_t i) KEEL_LOOP_BODY {
    const std::size_t c = of.column + i;
    const Floats rstd = part.load(in.rstd + c), gain = in.gain.load(part, c);
    const Floats bias = in.bias.load(part, c);
    Floats sum = part.load(squares + c);
    unrolled<kRows>([&](std::size_t r) KEEL_LOOP_BODY {
      if (kWrites) hwy::Prefetch(in.x + of.at[r] + i + kAhead);
      const Floats z = hn::Mul(part.load(in.x + of.at[r] + i), splat(in.row_rstd[of.number[r]]));
      sum = hn::MulAdd(z, z, sum);
      if (kWrites) in.y.put(part, hn::MulAdd(hn::Mul(z, rstd), gain, bias), of.at[r] + i);
    });
    part.store(sum, squares + c);
  });
}

// A strip of scaled rows.
template <class T>
struct ScaledStrip {
  const Strip& strip;
  std::size_t stride;
  const RowGroups& sizes;
  const ScaledForward<T>& in;
};

// Adds the squares of columns [first, last), in double.
template <class T>
HWY_NOINLINE void add_squares_in_double(const ScaledStrip<T>& of, std::size_t first,
                                        std::size_t last, double* totals) {
  for (std::size_t row = 0; row < of.strip.rows; ++row) {
    const std::size_t offset = of.strip.offsets[row];
    const float* const row_rstd = of.in.row_rstd + offset / of.stride * of.sizes.groups;
    for (std::size_t c = first; c < last; ++c) {
      const double z = of.in.x[offset + c] * row_rstd[c / of.sizes.width];
      totals[c] += z * z;
    }
  }
}

// Adds the sums of a strip's squares to totals (channels). Squares that leave the range of a float
// are summed again in double.
template <class T>
HWY_INLINE void add_squares(const ScaledStrip<T>& of, const float* squares, double* totals) {
  const std::size_t channels = of.sizes.groups * of.sizes.width;
  for_lanes(channels, [&](auto part, std::size_t c) KEEL_LOOP_BODY {
    const Floats sum = part.load(squares + c);
    if (holds_for_all(part, in_range(sum))) return add_to(totals + c, WideDoubles::of(sum));
    HWY_ALIGN float sums[kLanes], are_usual[kLanes];
    hn::Store(sum, F(), sums);
    hn::Store(hn::IfThenElseZero(in_range(sum), splat(1)), F(), are_usual);
    for (std::size_t k = 0; k < kLanes && c + k < channels; ++k) {
      are_usual[k] != 0 ? void(totals[c + k] += sums[k])
                        : add_squares_in_double(of, c + k, c + k + 1, totals);
    }
  });
}

// dx = row_rstd * (dz - z * mean(dz * z)), dz = rdx * (dy * gain - xhat * slope), xhat = z * rstd;
// row_rstd is (rows, groups), all others except x and dy are (channels). dx may be dy.
template <class T>
struct ScaledBackward {
  const T *x, *dy;
  const float *row_rstd, *rstd, *rdx;
  OptionalColumns slope, gain;
  ResultRows dx;
};

// Adds dy and dy * xhat to sums (channels). If kWrites, also keeps dz and the sum of dz * z.
template <bool kWrites, std::size_t kRows, class T>
HWY_INLINE void visit_group(const Group<kRows>& of, const ScaledBackward<T>& in,
                            float* const (&sums)[2], float* const (&dz)[kRows],
                            ChainedSum (&products)[kRows]) {
  const auto body = [&](auto part, std::size_t i, int chain) KEEL_LOOP_BODY {
    const std::size_t c = of.column + i;
    const Floats rstd = part.load(in.rstd + c), rdx = part.load(in.rdx + c);
    const Floats slope = in.slope.load(part, c), gain = in.gain.load(part, c);
    Floats dy_sum = part.load(sums[0] + c), dy_xhat_sum = part.load(sums[1] + c);
    unrolled<kRows>([&](std::size_t r) KEEL_LOOP_BODY {
      const T *x = in.x + of.at[r] + i, *dys = in.dy + of.at[r] + i;
      const Floats z = hn::Mul(part.load(x), splat(in.row_rstd[of.number[r]])), dy = part.load(dys);
      const Floats xhat = hn::Mul(z, rstd);
      dy_sum = hn::Add(dy_sum, dy);
      dy_xhat_sum = hn::MulAdd(dy, xhat, dy_xhat_sum);
      if (!kWrites) return;
      prefetch_ahead(x);
      prefetch_ahead(dys);
      const Floats v = hn::Mul(rdx, hn::NegMulAdd(xhat, slope, hn::Mul(dy, gain)));
      part.store(v, dz[r] + i);
      products[r].add_product(chain, v, z);
    });
    part.store(dy_sum, sums[0] + c);
    part.store(dy_xhat_sum, sums[1] + c);
  };
  for_runs(of.width, body, [&]() KEEL_LOOP_BODY {
    unrolled<kRows>([&](std::size_t r) KEEL_LOOP_BODY { products[r].end_run(); });
  });
}

// Computes dx of one row's group from its dz and the sum of dz * z.
template <std::size_t kRows, class T>
HWY_INLINE void write_group(const Group<kRows>& of, std::size_t row, const ScaledBackward<T>& in,
                            const float* dz, double products) {
  const Floats row_rstd = splat(in.row_rstd[of.number[row]]);
  const auto slope = static_cast<float>(products / static_cast<double>(of.width));
  const ScaledGradient gradient{row_rstd, splat(slope), row_rstd};
  const T* const x = in.x + of.at[row];
  write_row(in.dx, of.at[row], of.width, [=](auto part, std::size_t i) KEEL_LOOP_BODY {
    return gradient.dx(part.load(dz + i), gradient.xhat(part.load(x + i)));
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
