// The norms of elements, compiled once per instruction set: y = gain f(u) + bias with
// u = alpha x + shift. A Curve has value(u), which is f, and with_slope(u), f and its derivative.
#if defined(KEEL_BACKENDS_ONEDNN_SIMD_CURVE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KEEL_BACKENDS_ONEDNN_SIMD_CURVE_INL_H_
#undef KEEL_BACKENDS_ONEDNN_SIMD_CURVE_INL_H_
#else
#define KEEL_BACKENDS_ONEDNN_SIMD_CURVE_INL_H_
#endif

#include "backends/onednn/kernels/norm/curve_plan.h"
#include "backends/onednn/simd/column_sums-inl.h"
#include "backends/onednn/simd/math.h"
#include "backends/onednn/simd/row_norm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {

// u = alpha x + shift.
struct CurveArgument {
  Floats alpha, shift;

  template <class Tensors>
  HWY_INLINE explicit CurveArgument(const Tensors& t)
      : alpha(splat(number_of(t.alpha))), shift(splat(number_of(t.shift))) {}
  HWY_INLINE Floats operator()(Floats x) const { return hn::MulAdd(alpha, x, shift); }
};

template <class Curve, class T>
HWY_INLINE void write_curve_rows(const CurveForward& t, const RowRange& range) {
  const CurveArgument u(t);
  const RowAffine affine{t.gain.as<float>(), t.bias.as<float>()};
  const ResultRows y(t.binding, range.width);
  for (std::size_t row = range.first; row < range.last; ++row) {
    const T* const x = t.x.as<T>() + row * range.width;
    write_row(y, row * range.width, range.width, [=](auto part, std::size_t i) KEEL_LOOP_BODY {
      return affine.apply(part, Curve::value(u(part.load(x + i))), i);
    });
  }
}

// Writes y of some rows.
template <class Curve>
void curve_forward(const CurveForward& t, const RowRange& range) {
  with_elements(t.x, [&]<class T>(T) HWY_ATTR { write_curve_rows<Curve, T>(t, range); });
}

// The terms that an element, or a column of some rows, adds to CurveSums.
struct CurveTerms {
  Floats gain, bias, alpha, shift;

  HWY_INLINE CurveTerms() : gain(zero()), bias(zero()), alpha(zero()), shift(zero()) {}
  HWY_INLINE void add(Floats dy, Floats f, Floats k, Floats x) {
    gain = hn::MulAdd(dy, f, gain);
    bias = hn::Add(bias, dy);
    alpha = hn::MulAdd(k, x, alpha);
    shift = hn::Add(shift, k);
  }
  template <class Part>
  HWY_INLINE void add_to(const BlockSums& sums, Part part, std::size_t i) const {
    const auto add_up = [&](std::size_t kind, Floats terms) KEEL_LOOP_BODY {
      float* const to = sums.run(kind) + i;
      part.store(hn::Add(part.load(to), terms), to);
    };
    add_up(CurveSums::kGain, gain);
    add_up(CurveSums::kBias, bias);
    add_up(CurveSums::kAlpha, alpha);
    add_up(CurveSums::kShift, shift);
  }
};

// Writes dx of kRows rows of a tile from `row` on and adds their terms to the sums.
template <class Curve, class T, std::size_t kRows>
HWY_INLINE void take_curve_rows(const CurveBackward& t, std::size_t width, const GradientTile& tile,
                                std::size_t row, BlockSums& sums) {
  const std::size_t at = row * width + tile.column;
  const T *const x = t.x.as<T>() + at, *const dy = t.dy.as<T>() + at;
  const float* const gains = t.gain ? t.gain.as<float>() + tile.column : nullptr;
  const CurveArgument u(t);
  with_put(ResultRows(t.binding, width).from(at), [&](auto put) KEEL_LOOP_BODY {
    for_lanes(tile.rows.width, [=, &sums](auto part, std::size_t i) KEEL_LOOP_BODY {
      const Floats gain = gains ? part.load(gains + i) : splat(1);
      CurveTerms terms;
      unrolled<kRows>([&](std::size_t k) KEEL_LOOP_BODY {
        const std::size_t e = k * width + i;
        const Floats x_e = part.load(x + e), dy_e = part.load(dy + e);
        const WithSlope f = Curve::with_slope(u(x_e));
        const Floats of_u = hn::Mul(hn::Mul(dy_e, gain), f.slope);
        put(part, hn::Mul(u.alpha, of_u), e);
        terms.add(dy_e, f.value, of_u, x_e);
      });
      terms.add_to(sums, part, i);
    });
  });
  sums.end_addition();
}

// Adds the sums of a panel's blocks up to dgain and dbias, of which either may be absent.
HWY_INLINE void store_curve_columns(const CurveBackward& t, std::size_t first, std::size_t n,
                                    const ColumnSums& sums, double* memory) {
  const auto store = [&](std::size_t kind, const TensorRef& out) HWY_ATTR {
    if (out) sum_over_blocks(sums, memory, kind, out.as<float>() + first, n);
  };
  store(CurveSums::kGain, t.dgain);
  store(CurveSums::kBias, t.dbias);
}

// Writes dx of a tile and leaves its sums.
template <class Curve>
void curve_backward(const CurveBackward& t, const CurvePlan& plan, const GradientTile& tile) {
  HWY_ALIGN double memory[CurvePlan::kMemory];
  BlockSums sums(plan.tile_sums(), memory, 0);
  with_elements(t.x, [&]<class T>(T) HWY_ATTR {
    for_row_groups(tile.rows, [&](auto rows, std::size_t row) HWY_ATTR {
      take_curve_rows<Curve, T, rows()>(t, plan.width(), tile, row, sums);
    });
  });
  sums.end_run();
  plan.leave(t.binding.workspace, tile, memory);
  if (plan.is_one_block()) {
    store_curve_columns(t, tile.column, tile.rows.width, plan.tile_sums(), memory);
  }
}

// Adds the sums of all tiles up to the gradients of the parameters.
HWY_INLINE void add_curve_sums(const CurveBackward& t, const CurvePlan& plan) {
  void* const workspace = t.binding.workspace;
  if (!plan.is_one_block()) {
    plan.each_panel(workspace,
                    [&](std::size_t first, std::size_t n, const ColumnSums& sums, double* memory)
                        HWY_ATTR { store_curve_columns(t, first, n, sums, memory); });
  }
  if (t.dalpha) *t.dalpha.as<float>() = float(plan.total(workspace, CurveSums::kAlpha));
  if (t.dshift) *t.dshift.as<float>() = float(plan.total(workspace, CurveSums::kShift));
}

}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
