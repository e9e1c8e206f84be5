// Parts of the backward of centred row norms, compiled once per instruction set: the sums of a row
// and the gradient computed from them.
#if defined(KEEL_BACKENDS_ONEDNN_SIMD_ROW_GRADIENT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KEEL_BACKENDS_ONEDNN_SIMD_ROW_GRADIENT_INL_H_
#undef KEEL_BACKENDS_ONEDNN_SIMD_ROW_GRADIENT_INL_H_
#else
#define KEEL_BACKENDS_ONEDNN_SIMD_ROW_GRADIENT_INL_H_
#endif

#include "backends/onednn/simd/column_sums-inl.h"
#include "backends/onednn/simd/row_norm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {

// Computes dx = rstd * (g - mean_g - xhat * slope) of one row.
template <class Xhat>
struct RowGradientOf {
  Xhat xhat;
  Floats mean_g, slope;

  HWY_INLINE Floats dx(Floats g, Floats xhat_of_x) const {
    return hn::Mul(xhat.true_rstd(), hn::NegMulAdd(xhat_of_x, slope, hn::Sub(g, mean_g)));
  }
};
using RowGradient = RowGradientOf<Standardize>;

HWY_INLINE bool is_far(const RowGradient& of) { return any_far(of.xhat.mean); }
HWY_INLINE RowGradientOf<FarStandardize> far(const RowGradient& of) {
  return {FarStandardize(of.xhat), of.mean_g, of.slope};
}

// The inputs of the backward of one row: x, dy (n) and the statistics that the forward saved.
template <class T>
struct SavedRow {
  const T *x, *dy;
  float mean, rstd;
  std::size_t n;
};

// Sums over one row: of xhat = (x - mean) * rstd, of g = dy * gain, and of g * xhat.
struct RowSums {
  double xhat, g, g_xhat;
};

template <class T, class Xhat>
HWY_INLINE RowSums row_sums(const SavedRow<T>& row, const RowAffine& affine, const Xhat& of) {
  ChainedSum xhats, gs, products;
  for_runs(
      row.n,
      [&](auto part, std::size_t i, int chain) KEEL_LOOP_BODY {
        const Floats xhat = hn::Mul(part.only(of.off(part.load(row.x + i))), of.rstd);
        const Floats g = affine.scale(part, part.load(row.dy + i), i);
        xhats.add(chain, xhat);
        gs.add(chain, g);
        products.add_product(chain, g, xhat);
      },
      [&]() KEEL_LOOP_BODY {
        xhats.end_run();
        gs.end_run();
        products.end_run();
      });
  return {xhats.total(), gs.total(), products.total()};
}
template <class T>
HWY_INLINE RowSums row_sums(const SavedRow<T>& row, const RowAffine& affine) {
  RowSums sums{};
  with_range({splat(row.mean), splat(row.rstd), zero()},
             [&](const auto& xhat) KEEL_LOOP_BODY { sums = row_sums(row, affine, xhat); });
  return sums;
}

// slope = slope_factor * mean(g * xhat). The sum of xhat would be 0 but for the rounding error of
// the saved mean; the correction removes this error.
template <class T>
HWY_INLINE RowGradient row_gradient(const SavedRow<T>& row, const RowSums& sums,
                                    double slope_factor) {
  const double count = static_cast<double>(row.n), low = sums.xhat / count;
  const double slope = slope_factor * (sums.g_xhat - low * sums.g) / count;
  return {{splat(row.mean), splat(row.rstd), splat(static_cast<float>(low))},
          splat(static_cast<float>(sums.g / count)),
          splat(static_cast<float>(slope))};
}

template <class T>
HWY_INLINE RowGradient row_gradient(const SavedRow<T>& row, const RowAffine& affine,
                                    double slope_factor) {
  return row_gradient(row, row_sums(row, affine), slope_factor);
}

// A group of neighbouring rows, or some of their columns.
template <class T>
struct GradientRows {
  const T *x, *dy;
  ResultRows dx;  // may be dy
  std::size_t width;
  std::size_t skip = 0;  // columns of a row that are skipped
};

// Makes a group of whole rows from element `first` on.
template <class T>
HWY_INLINE GradientRows<T> gradient_rows(const T* x, const T* dy, const ResultRows& dx,
                                         std::size_t first, std::size_t width) {
  return {.x = x + first, .dy = dy + first, .dx = dx.from(first), .width = width};
}

// How write_gradients stores registers of dx.
struct PutPlain {
  template <class Part>
  HWY_INLINE void operator()(const ResultRows& dx, Part part, Floats v, std::size_t at) const {
    part.store(v, dx.plain() + at);
  }
};
struct PutCached {
  template <class Part>
  HWY_INLINE void operator()(const ResultRows& dx, Part part, Floats v, std::size_t at) const {
    dx.put_cached(part, v, at);
  }
};
// Stores past the caches (see is_streamed) write whole lines, row by row, because each half of a
// line that is left half filled is sent to memory separately.
template <bool kNarrow>
struct PutInLines {
  static constexpr std::size_t kElements = 64 / (kNarrow ? sizeof(BF16) : sizeof(float));
  static constexpr std::size_t kRegisters =
      kLanes < 4 || kLanes > kElements ? 1 : kElements / kLanes;
  HWY_INLINE void operator()(const ResultRows& dx, Whole, Floats v, std::size_t at) const {
    dx.stream<kNarrow>(v, at);
  }
};

// Does what write_gradients says, with the objects as they are. These are passed by value: one of
// several objects in memory would be loaded again after every store.
template <class T, class... Gradient>
HWY_INLINE void put_gradients(const GradientRows<T>& rows, const RowAffine& affine, float* dgain,
                              float* dbias, const Gradient... of_row) {
  const T *x = rows.x, *dy = rows.dy;
  const auto write_columns = [=, dx = rows.dx, step = rows.width + rows.skip](
                                 auto registers, auto part, std::size_t i,
                                 const auto& put) KEEL_LOOP_BODY {
    constexpr std::size_t kCount = registers();
    Floats gain[kCount], dgains[kCount], dbiases[kCount];
    unrolled<kCount>([&](std::size_t k) KEEL_LOOP_BODY {
      gain[k] = affine.gain ? part.load(affine.gain + i + k * kLanes) : splat(1);
      dgains[k] = dbiases[k] = zero();
    });
    std::size_t at = i;
    const auto write_one = [&](const auto& gradient) KEEL_LOOP_BODY {
      unrolled<kCount>([&](std::size_t k) KEEL_LOOP_BODY {
        const std::size_t e = at + k * kLanes;
        const Floats dy_e = part.load(dy + e), xhat = gradient.xhat(part.load(x + e));
        put(dx, part, gradient.dx(hn::Mul(dy_e, gain[k]), xhat), e);
        dgains[k] = hn::MulAdd(dy_e, xhat, dgains[k]);
        dbiases[k] = hn::Add(dbiases[k], dy_e);
      });
      at += step;
    };
    (write_one(of_row), ...);
    if (dgain == nullptr) return;
    unrolled<kCount>([&](std::size_t k) KEEL_LOOP_BODY {
      float *const gain_sum = dgain + i + k * kLanes, *const bias_sum = dbias + i + k * kLanes;
      part.store(hn::Add(part.load(gain_sum), dgains[k]), gain_sum);
      part.store(hn::Add(part.load(bias_sum), dbiases[k]), bias_sum);
    });
  };
  const auto write_lines = [&](auto put) KEEL_LOOP_BODY {
    for (std::size_t i = 0; i < rows.width; i += put.kRegisters * kLanes) {
      write_columns(Rows<put.kRegisters>{}, Whole{}, i, put);
    }
  };
  if (rows.dx.streamed()) {
    return rows.dx.is_narrow() ? write_lines(PutInLines<true>{}) : write_lines(PutInLines<false>{});
  }
  const auto write_all = [=, width = rows.width](auto put) KEEL_LOOP_BODY {
    for_lanes(width, [=](auto part, std::size_t i)
                         KEEL_LOOP_BODY { write_columns(Rows<1>{}, part, i, put); });
  };
  const bool is_usual = std::is_same_v<T, float> && !rows.dx.is_narrow();
  is_usual ? write_all(PutPlain{}) : write_all(PutCached{});
}

// Writes dx of a group of rows and adds their share of dgain and dbias, unless these are null. Each
// row has an object with xhat(x) and dx(g, xhat), such as RowGradient. If one has a far mean, all
// are taken by what far() makes of them.
template <class T, class... Gradient>
HWY_INLINE void write_gradients(const GradientRows<T>& rows, const RowAffine& affine, float* dgain,
                                float* dbias, const Gradient... of_row) {
  if constexpr (requires { (far(of_row), ...); }) {
    if (HWY_UNLIKELY((is_far(of_row) || ...))) {
      return put_gradients(rows, affine, dgain, dbias, far(of_row)...);
    }
  }
  put_gradients(rows, affine, dgain, dbias, of_row...);
}

// The same; dgain and dbias are added to sums 0 and 1, unless sums is null.
template <class T, class... Gradient>
HWY_INLINE void write_gradients(const GradientRows<T>& rows, const RowAffine& affine,
                                BlockSums* sums, const Gradient... of_row) {
  write_gradients(rows, affine, sums ? sums->run(0) : nullptr, sums ? sums->run(1) : nullptr,
                  of_row...);
  if (sums) sums->end_addition();
}

}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
