// Layer norm: a row at a time, in passes over data that stays in L1.
#include "src/ops/norm/layer_norm.h"

#include <array>
#include <utility>

#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/kernels/norm/statistic.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/norm/layer_norm.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/row_gradient-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

// kRows rows from `row` on: y = (x - mean) * rstd * gain + bias; mean and rstd are saved.
template <std::size_t kRows>
void forward_rows(const Binding& b, const NormStatistic& statistic, std::size_t row,
                  std::size_t width) {
  const RowAffine affine{b.inputs[1].as<float>(), b.inputs[2].as<float>()};
  const double count = variance_count(statistic, std::int64_t(width));
  const float* x = b.inputs[0].as<float>() + row * width;
  float* y = b.outputs[0].as<float>() + row * width;
  float* means = b.outputs[1].as<float>() + row;
  float* rstds = b.outputs[2].as<float>() + row;
  float centres[kRows];
  double low[kRows];
  for (std::size_t k = 0; k < kRows; ++k) centres[k] = row_centre(x + k * width, width);
  for (std::size_t k = 0; k < kRows; ++k) {
    prefetch_row(y + k * width, width);
    const RowMoments moments = row_moments(x + k * width, width, centres[k]);
    means[k] = float(moments.mean);
    low[k] = moments.mean - means[k];
    rstds[k] = float(rstd_of(statistic, moments.sum_of_squares / count));
  }
  for (std::size_t k = 0; k < kRows; ++k, x += width, y += width) {
    prefetch_row(x + kRows * width, width);
    const Standardize xhat(means[k], low[k], rstds[k]);
    for_lanes(width, [&](auto part, std::size_t i) HWY_ATTR {
      part.store(affine.apply(part, xhat(part.load(x + i)), i), y + i);
    });
  }
}

void forward(const Binding& b, const NormStatistic& statistic, const RowRange& range) {
  for_row_groups(range, [&](auto rows, std::size_t row)
                            HWY_ATTR { forward_rows<rows()>(b, statistic, row, range.width); });
}

RowGradient gradient_of(const Binding& b, const NormStatistic& statistic, std::size_t row,
                        std::size_t width) {
  const SavedRow saved{b.inputs[0].as<float>() + row * width, b.inputs[4].as<float>() + row * width,
                       b.inputs[2].as<float>()[row], b.inputs[3].as<float>()[row], width};
  const double count = variance_count(statistic, std::int64_t(width));
  return row_gradient(saved, {b.inputs[1].as<float>(), nullptr},
                      double(width) / count * slope_factor(statistic, saved.rstd));
}

// kRows rows from `row` on: dx, and their share of dgain and dbias added to sums.
template <std::size_t kRows>
void backward_rows(const Binding& b, const NormStatistic& statistic, std::size_t row,
                   std::size_t width, double* sums) {
  const RowAffine affine{b.inputs[1].as<float>(), nullptr};
  const float* x = b.inputs[0].as<float>() + row * width;
  const float* dy = b.inputs[4].as<float>() + row * width;
  float* dx = b.outputs[0].as<float>() + row * width;
  const auto gradient = [&]<std::size_t... kRow>(std::index_sequence<kRow...>) HWY_ATTR {
    return std::array{gradient_of(b, statistic, row + kRow, width)...};
  }
  (std::make_index_sequence<kRows>());
  for_lanes(width, [&](auto part, std::size_t i) HWY_ATTR {
    Floats dgain = zero(), dbias = zero();
    for (std::size_t k = 0; k < kRows; ++k) {
      const Floats dy_k = part.load(dy + k * width + i);
      const Floats xhat = gradient[k].xhat(part.load(x + k * width + i));
      part.store(gradient[k].dx(affine.scale(part, dy_k, i), xhat), dx + k * width + i);
      dgain = hn::MulAdd(dy_k, xhat, dgain);
      dbias = hn::Add(dbias, dy_k);
    }
    if (sums == nullptr) return;
    add_to_sums(sums + i, part.only(dgain));
    add_to_sums(sums + padded(width) + i, part.only(dbias));
  });
}

void backward(const Binding& b, const NormStatistic& statistic, const RowRange& range,
              double* sums) {
  if (sums) std::fill_n(sums, 2 * padded(range.width), 0.0);
  for_row_groups(range, [&](auto rows, std::size_t row) HWY_ATTR {
    backward_rows<rows()>(b, statistic, row, range.width, sums);
  });
}

// dgain and dbias (width), each perhaps absent, from the sums that every block left.
void add_up(const Binding& b, std::size_t blocks, std::size_t width) {
  const double* sums = static_cast<const double*>(b.workspace);
  for (std::size_t k : {0, 1}) {
    float* out = b.outputs[1 + k].as<float>();
    if (out) sum_blocks({sums + k * padded(width), 2 * padded(width), blocks}, out, width);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keel::onednn {

HWY_EXPORT(forward);
HWY_EXPORT(backward);
HWY_EXPORT(add_up);

Prepared prepare_layer_norm(const NodeContext& context) {
  const auto attrs = context.attrs<LayerNormAttrs>();
  const RowBlocks blocks = independent_row_blocks(row_sizes(context.input(0).shape, attrs.axes));
  return kernel_of([=](const Binding& b) {
    blocks.run([&](std::size_t, const RowRange& range) {
      HWY_DYNAMIC_DISPATCH(forward)(b, attrs.statistic(), range);
    });
  });
}

Prepared prepare_layer_norm_backward(const NodeContext& context) {
  const auto attrs = context.attrs<LayerNormAttrs>();
  const RowBlocks blocks = summed_row_blocks(row_sizes(context.input(0).shape, attrs.axes), 2);
  const std::size_t stride = 2 * padded(std::size_t(blocks.width));
  const auto run = [=](const Binding& b) {
    const bool has_sums = b.outputs[1] || b.outputs[2];
    blocks.run([&](std::size_t block, const RowRange& range) {
      double* sums = has_sums ? static_cast<double*>(b.workspace) + block * stride : nullptr;
      HWY_DYNAMIC_DISPATCH(backward)(b, attrs.statistic(), range, sums);
    });
    HWY_DYNAMIC_DISPATCH(add_up)(b, std::size_t(blocks.count), std::size_t(blocks.width));
  };
  return kernel_of(run, blocks.count * std::int64_t(stride * sizeof(double)));
}

}  // namespace keel::onednn
#endif
