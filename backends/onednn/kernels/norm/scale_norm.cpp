// Scaled l2 norm takes a row at a time, in passes over data that stays in L1.
#include "src/ops/norm/scale_norm.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/row_blocks.h"

namespace keel::onednn {
namespace {

using In = ScaleNormInput;
using Out = ScaleNormOutput;
using BackIn = ScaleNormBackwardInput;
using BackOut = ScaleNormGradient;

}  // namespace
}  // namespace keel::onednn

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/norm/scale_norm.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/row_rms-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

float gain_of(const Binding& b) {
  return b.inputs[In::kGain] ? *b.inputs[In::kGain].as<float>() : 1;
}

// Writes y = x * rstd * gain and saves rstd.
void forward(const Binding& b, double eps, const RowRange& range) {
  const auto rstd_of = [=](double squares) { return 1 / std::max(std::sqrt(squares), eps); };
  const auto finish = [gain = splat(gain_of(b))](std::size_t) {
    return [gain](Floats xhat, auto, std::size_t) KEEL_LOOP_BODY { return hn::Mul(xhat, gain); };
  };
  with_elements(b.inputs[In::kX], [&]<class T>(T) HWY_ATTR {
    write_scaled(ScaledRows<T>{b.inputs[In::kX].as<T>(), b.outputs[Out::kRstd].as<float>(),
                               ResultRows(b, range.width), range},
                 rstd_of, finish);
  });
}

template <class T>
void backward_rows(const Binding& b, double eps, const RowRange& range, double& dgain) {
  const float gain = gain_of(b);
  const ResultRows dx(b, range.width);
  for (std::size_t row = range.first; row < range.last; ++row) {
    const T *x = b.inputs[BackIn::kX].as<T>() + row * range.width,
            *dy = b.inputs[BackIn::kDy].as<T>() + row * range.width;
    const float rstd = b.inputs[BackIn::kRstd].as<float>()[row];
    const double product = row_products(x, dy, range.width, rstd, {nullptr, nullptr});
    dgain += product;
    const float slope = rstd == float(1 / eps) ? 0 : float(product);
    const ScaledGradient gradient{splat(rstd), splat(slope), splat(rstd * gain)};
    write_row(dx, row * range.width, range.width, [=](auto part, std::size_t i) KEEL_LOOP_BODY {
      return gradient.dx(part.load(dy + i), gradient.xhat(part.load(x + i)));
    });
  }
}

// Writes dx of some rows and adds their sum of dy * xhat to dgain, row by row.
void backward(const Binding& b, double eps, const RowRange& range, double& dgain) {
  with_elements(b.inputs[BackIn::kX],
                [&]<class T>(T) HWY_ATTR { backward_rows<T>(b, eps, range, dgain); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keel::onednn {

HWY_EXPORT(forward);
HWY_EXPORT(backward);

Prepared prepare_scale_norm(const NodeContext& context) {
  const auto attrs = context.attrs<ScaleNormAttrs>();
  const RowBlocks blocks =
      independent_row_blocks(row_sizes(context.input(In::kX).shape, attrs.axes));
  return kernel_of_rows(blocks, [=](const Binding& b, const RowRange& range) {
    HWY_DYNAMIC_DISPATCH(forward)(b, attrs.eps, range);
  });
}

// A block leaves its part of dgain in the workspace; the parts are added in the blocks' order.
Prepared prepare_scale_norm_backward(const NodeContext& context) {
  const auto attrs = context.attrs<ScaleNormAttrs>();
  const RowBlocks blocks =
      independent_row_blocks(row_sizes(context.input(BackIn::kX).shape, attrs.axes));
  const auto run = [=](const Binding& b, const Neighbours& neighbours) {
    double* parts = static_cast<double*>(b.workspace);
    blocks.run([&](std::size_t block, const RowRange& range) {
      parts[block] = 0;
      with_neighbours(b, neighbours, range, [&](const Binding& shown, const RowRange& part) {
        HWY_DYNAMIC_DISPATCH(backward)(shown, attrs.eps, part, parts[block]);
      });
    });
    if (b.outputs[BackOut::kDgain]) {
      *b.outputs[BackOut::kDgain].as<float>() =
          float(std::accumulate(parts, parts + blocks.count, 0.0));
    }
  };
  return row_kernel_of(blocks.width, run, blocks.count * std::int64_t(sizeof(double)));
}

}  // namespace keel::onednn
#endif
