// Reference batch norm: one channel after the other, each seen as an (outer, inner) matrix.
#include "src/ops/norm/batch_norm.h"

#include "backends/reference/kernels/kernels.h"

namespace keel::reference {
namespace {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Channel = Eigen::Map<RowMajor, Eigen::Unaligned, Eigen::OuterStride<>>;

// The elements of channel c of a tensor (outer, channels, inner).
Channel channel(const TensorRef& t, const ColumnSizes& s, Eigen::Index c) {
  return {t.as<double>() + c * s.inner, s.outer, s.inner,
          Eigen::OuterStride<>(s.channels * s.inner)};
}

double element_or(const TensorRef& t, Eigen::Index c, double otherwise) {
  return t ? t.as<double>()[c] : otherwise;
}

struct Moments {
  double mean, sum_of_squares;  // of x, and of x - mean
};

// Relative to the first element, so that a constant channel has exactly its value as the mean.
Moments batch_moments(const Channel& x) {
  const double first = x(0, 0);
  const double mean = first + (x.array() - first).mean();
  return {mean, (x.array() - mean).square().sum()};
}

// The batch's moments and the running statistics that follow from them.
Moments train(const Binding& b, const ColumnSizes& sizes, const BatchNormAttrs& attrs,
              Eigen::Index c) {
  const Moments batch = batch_moments(channel(b.inputs[0], sizes, c));
  const double count = double(sizes.count()) - (attrs.running_unbiased ? 1 : 0);
  const auto blend = [&](int state, double value) {
    const double before = b.inputs[std::size_t(state)].as<double>()[c];
    b.outputs[std::size_t(state)].as<double>()[c] = attrs.keep * before + (1 - attrs.keep) * value;
  };
  blend(3, batch.mean);
  blend(4, batch.sum_of_squares / count);
  return batch;
}

// y = (x - mean) * rstd * gain + bias, with the batch's or the running statistics.
void forward(const Binding& b, const ColumnSizes& sizes, const BatchNormAttrs& attrs) {
  Vector means = vector(b.outputs[1]), rstds = vector(b.outputs[2]);
  const double count = double(sizes.count()) - (attrs.unbiased ? 1 : 0);
  for (Eigen::Index c = 0; c < sizes.channels; ++c) {
    double mean = vector(b.inputs[3])[c], variance = vector(b.inputs[4])[c];
    if (attrs.training) {
      const Moments batch = train(b, sizes, attrs, c);
      mean = batch.mean;
      variance = batch.sum_of_squares / count;
    }
    const double rstd = 1 / std::sqrt(variance + attrs.eps);
    channel(b.outputs[0], sizes, c) =
        (channel(b.inputs[0], sizes, c).array() - mean) * rstd * element_or(b.inputs[1], c, 1) +
        element_or(b.inputs[2], c, 0);
    means[c] = mean;
    rstds[c] = rstd;
  }
}

// g = dy * gain. Training: dx = rstd * (g - mean(g) - xhat * sum(g * xhat) / N);
// evaluation: dx = rstd * g.
void backward(const Binding& b, const ColumnSizes& sizes, const BatchNormAttrs& attrs) {
  const double count = double(sizes.count()) - (attrs.unbiased ? 1 : 0);
  for (Eigen::Index c = 0; c < sizes.channels; ++c) {
    const double rstd = vector(b.inputs[3])[c], gain = element_or(b.inputs[1], c, 1);
    const RowMajor xhat = (channel(b.inputs[0], sizes, c).array() - vector(b.inputs[2])[c]) * rstd;
    const RowMajor dy = channel(b.inputs[4], sizes, c);
    const double dgain = dy.cwiseProduct(xhat).sum(), dbias = dy.sum();
    Channel dx = channel(b.outputs[0], sizes, c);
    if (attrs.training) {
      const double mean_g = gain * dbias / double(sizes.count()), slope = gain * dgain / count;
      dx = rstd * (gain * dy.array() - mean_g - xhat.array() * slope);
    } else {
      dx = rstd * gain * dy;
    }
    if (b.outputs[1]) vector(b.outputs[1])[c] = dgain;
    if (b.outputs[2]) vector(b.outputs[2])[c] = dbias;
  }
}

}  // namespace

Prepared prepare_batch_norm(const NodeContext& context) {
  const auto attrs = context.attrs<BatchNormAttrs>();
  const ColumnSizes sizes = column_sizes(context.input(0).shape);
  return kernel_of([=](const Binding& b) { forward(b, sizes, attrs); });
}

Prepared prepare_batch_norm_backward(const NodeContext& context) {
  const auto attrs = context.attrs<BatchNormAttrs>();
  const ColumnSizes sizes = column_sizes(context.input(0).shape);
  return kernel_of([=](const Binding& b) { backward(b, sizes, attrs); });
}

}  // namespace keel::reference
