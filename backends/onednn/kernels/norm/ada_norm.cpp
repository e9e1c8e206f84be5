// AdaNorm takes a row at a time, in passes over data that stays in L1.
#include "src/ops/norm/ada_norm.h"

#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/kernels/norm/statistic.h"
#include "backends/onednn/row_blocks.h"

#ifndef KEEL_ADA_NORM_FACTOR  // this file is compiled once per instruction set
#define KEEL_ADA_NORM_FACTOR
namespace keel::onednn {
namespace {

using In = AdaNormInput;
using BackIn = AdaNormBackwardInput;

// phi = C - tilt * xhat. The factor of dy in the backward has the same form.
struct Factor {
  double C, tilt;
};

}  // namespace
}  // namespace keel::onednn
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/norm/ada_norm.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/centred_rows-inl.h"
#include "backends/onednn/simd/row_gradient-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

struct FactorLanes {
  Floats C, tilt;

  HWY_INLINE explicit FactorLanes(const Factor& factor)
      : C(splat(float(factor.C))), tilt(splat(float(factor.tilt))) {}
  HWY_INLINE Floats operator()(Floats v, Floats xhat) const {
    return hn::Mul(hn::NegMulAdd(tilt, xhat, C), v);
  }
};

void forward(const Binding& b, const AdaNormAttrs& attrs, const RowRange& range) {
  const FactorLanes phi({attrs.C, attrs.C * attrs.k});
  with_elements(b.inputs[In::kX], [&]<class T>(T) HWY_ATTR {
    write_centred<T>(b, attrs.statistic(), range,
                     [&](Floats xhat, auto, std::size_t)
                         KEEL_LOOP_BODY { return phi(xhat, xhat); });
  });
}

// Sums over one row: of xhat = (x - mean) * rstd, dy, dy * xhat and dy * xhat^2.
struct Moments {
  double xhat, dy, dy_xhat, dy_xhat2;
};

template <class T, class Xhat>
HWY_INLINE Moments moments_of(const SavedRow<T>& row, const Xhat& of) {
  ChainedSum xhats, dys, firsts, seconds;
  for_runs(
      row.n,
      [&](auto part, std::size_t i, int chain) KEEL_LOOP_BODY {
        const Floats xhat = hn::Mul(part.only(of.off(part.load(row.x + i))), of.rstd);
        const Floats dy = part.load(row.dy + i), product = hn::Mul(dy, xhat);
        xhats.add(chain, xhat);
        dys.add(chain, dy);
        firsts.add(chain, product);
        seconds.add_product(chain, product, xhat);
      },
      [&]() KEEL_LOOP_BODY {
        xhats.end_run();
        dys.end_run();
        firsts.end_run();
        seconds.end_run();
      });
  return {xhats.total(), dys.total(), firsts.total(), seconds.total()};
}

// dx = rstd * (g - mean(g) - xhat * slope), g = (C - tilt * xhat) * dy.
template <class Xhat>
struct AdaGradientOf {
  RowGradientOf<Xhat> centred;
  FactorLanes factor;

  HWY_INLINE Floats xhat(Floats x) const { return centred.xhat(x); }
  HWY_INLINE Floats dx(Floats dy, Floats xhat_of_x) const {
    return centred.dx(factor(dy, xhat_of_x), xhat_of_x);
  }
};
using AdaGradient = AdaGradientOf<Standardize>;

HWY_INLINE bool is_far(const AdaGradient& of) { return is_far(of.centred); }
HWY_INLINE AdaGradientOf<FarStandardize> far(const AdaGradient& of) {
  return {far(of.centred), of.factor};
}

// The sums of g and g * xhat follow from those of dy * xhat^p. The mean of xhat is 0 but for the
// rounding error of the saved mean, `low`, which is taken back.
template <class T>
AdaGradient gradient_of(const SavedRow<T>& row, const Factor& factor, double slope_factor) {
  Moments m{};
  with_range({splat(row.mean), splat(row.rstd), zero()},
             [&](const auto& xhat) KEEL_LOOP_BODY { m = moments_of(row, xhat); });
  const double count = double(row.n), low = m.xhat / count;
  const double first = m.dy_xhat - low * m.dy;
  const double second = m.dy_xhat2 - 2 * low * m.dy_xhat + low * low * m.dy;
  const double sum_g = factor.C * m.dy - factor.tilt * first;
  const double sum_g_xhat = factor.C * first - factor.tilt * second;
  const RowGradient centred{{splat(row.mean), splat(row.rstd), splat(float(low))},
                            splat(float(sum_g / count)),
                            splat(float(slope_factor * sum_g_xhat / count))};
  return {centred, FactorLanes(factor)};
}

template <class T>
void backward_rows(const Binding& b, const AdaNormAttrs& attrs, const RowRange& range) {
  const std::size_t width = range.width;
  const double spread = double(width) / variance_count(std::int64_t(width), attrs.unbiased);
  const ResultRows dx(b, width);
  const Factor factor{attrs.C, attrs.C * attrs.k * (attrs.detach ? 1 : 2)};
  for (std::size_t row = range.first; row < range.last; ++row) {
    const SavedRow<T> saved{
        b.inputs[BackIn::kX].as<T>() + row * width, b.inputs[BackIn::kDy].as<T>() + row * width,
        b.inputs[BackIn::kMean].as<float>()[row], b.inputs[BackIn::kRstd].as<float>()[row], width};
    const double outside = slope_factor(attrs.statistic(), saved.rstd);
    const GradientRows<T> rows = gradient_rows(
        b.inputs[BackIn::kX].as<T>(), b.inputs[BackIn::kDy].as<T>(), dx, row * width, width);
    write_gradients(rows, {nullptr, nullptr}, nullptr,
                    gradient_of(saved, factor, spread * outside));
  }
}

void backward(const Binding& b, const AdaNormAttrs& attrs, const RowRange& range) {
  with_elements(b.inputs[BackIn::kX],
                [&]<class T>(T) HWY_ATTR { backward_rows<T>(b, attrs, range); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keel::onednn {

HWY_EXPORT(forward);
HWY_EXPORT(backward);

Prepared prepare_ada_norm(const NodeContext& context) {
  const auto attrs = context.attrs<AdaNormAttrs>();
  const RowBlocks blocks =
      independent_row_blocks(row_sizes(context.input(In::kX).shape, attrs.axes));
  return kernel_of_rows(blocks, [=](const Binding& b, const RowRange& range) {
    HWY_DYNAMIC_DISPATCH(forward)(b, attrs, range);
  });
}

Prepared prepare_ada_norm_backward(const NodeContext& context) {
  const auto attrs = context.attrs<AdaNormAttrs>();
  const RowBlocks blocks =
      independent_row_blocks(row_sizes(context.input(BackIn::kX).shape, attrs.axes));
  return kernel_of_rows(blocks, [=](const Binding& b, const RowRange& range) {
    HWY_DYNAMIC_DISPATCH(backward)(b, attrs, range);
  });
}

}  // namespace keel::onednn
#endif
