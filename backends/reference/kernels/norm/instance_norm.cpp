// Reference instance norm of sequences: one sample after the other, a (steps, channels) matrix.
#include "src/ops/norm/instance_norm.h"

#include "backends/reference/kernels/norm/channels.h"

namespace keel::reference {
namespace {

using In = InstanceNormInput;
using Out = InstanceNormOutput;
using BackIn = InstanceNormBackwardInput;
using BackOut = InstanceNormGradient;

// The sample i of a tensor (n, steps, channels).
Matrix sample(const TensorRef& t, const SequenceSizes& s, Eigen::Index i) {
  return {t.as<double>() + i * s.steps * s.channels, s.steps, s.channels};
}

// The steps of sample i that the mask keeps.
KeptRows kept_steps(const TensorRef& mask, const SequenceSizes& s, Eigen::Index i) {
  KeptRows steps;
  for (Eigen::Index t = 0; t < s.steps; ++t) {
    if (!mask || mask.as<std::uint8_t>()[i * s.steps + t] != 0) steps.push_back(t);
  }
  return steps;
}

// y = (x - mean) * rstd * gain + bias
void forward(const Binding& b, const SequenceSizes& sizes, double eps) {
  for (Eigen::Index i = 0; i < sizes.samples; ++i) {
    const KeptRows steps = kept_steps(b.inputs[In::kMask], sizes, i);
    const RowMajor x = sample(b.inputs[In::kX], sizes, i)(steps, Eigen::all);
    Matrix y = sample(b.outputs[Out::kY], sizes, i);
    y.setZero();
    for (Eigen::Index c = 0; c < sizes.channels; ++c) {
      double mean = 0, variance = 0;
      if (!steps.empty()) {
        mean = x(0, c) + (x.col(c).array() - x(0, c)).mean();  // exact for a constant channel
        variance = (x.col(c).array() - mean).square().mean();
      }
      const double rstd = 1 / std::sqrt(variance + eps);
      const double gain = element_or(b.inputs[In::kGain], c, 1),
                   bias = element_or(b.inputs[In::kBias], c, 0);
      y(steps, c) = ((x.col(c).array() - mean) * rstd * gain + bias).matrix();
      vector(b.outputs[Out::kMean])[i * sizes.channels + c] = mean;
      vector(b.outputs[Out::kRstd])[i * sizes.channels + c] = rstd;
    }
  }
}

// g = dy * gain;  dx = rstd * (g - mean(g) - xhat * mean(g * xhat))
void backward(const Binding& b, const SequenceSizes& sizes) {
  Eigen::ArrayXd dgain = Eigen::ArrayXd::Zero(sizes.channels), dbias = dgain;
  for (Eigen::Index i = 0; i < sizes.samples; ++i) {
    const KeptRows steps = kept_steps(b.inputs[BackIn::kMask], sizes, i);
    const RowMajor x = sample(b.inputs[BackIn::kX], sizes, i)(steps, Eigen::all);
    const RowMajor dy = sample(b.inputs[BackIn::kDy], sizes, i)(steps, Eigen::all);
    Matrix dx = sample(b.outputs[BackOut::kDx], sizes, i);
    dx.setZero();
    for (Eigen::Index c = 0; c < sizes.channels && !steps.empty(); ++c) {
      const double mean = vector(b.inputs[BackIn::kMean])[i * sizes.channels + c];
      const double rstd = vector(b.inputs[BackIn::kRstd])[i * sizes.channels + c];
      const Eigen::ArrayXd xhat = (x.col(c).array() - mean) * rstd;
      const Eigen::ArrayXd g = dy.col(c).array() * element_or(b.inputs[BackIn::kGain], c, 1);
      dx(steps, c) = (rstd * (g - g.mean() - xhat * (g * xhat).mean())).matrix();
      dgain[c] += (dy.col(c).array() * xhat).sum();
      dbias[c] += dy.col(c).sum();
    }
  }
  if (b.outputs[BackOut::kDgain]) vector(b.outputs[BackOut::kDgain]) = dgain.matrix();
  if (b.outputs[BackOut::kDbias]) vector(b.outputs[BackOut::kDbias]) = dbias.matrix();
}

}  // namespace

Prepared prepare_instance_norm(const NodeContext& context) {
  const SequenceSizes sizes = sequence_sizes(context.input(In::kX).shape);
  const double eps = context.attrs<InstanceNormAttrs>().eps;
  return kernel_of([=](const Binding& b) { forward(b, sizes, eps); });
}

Prepared prepare_instance_norm_backward(const NodeContext& context) {
  const SequenceSizes sizes = sequence_sizes(context.input(BackIn::kX).shape);
  return kernel_of([=](const Binding& b) { backward(b, sizes); });
}

}  // namespace keel::reference
