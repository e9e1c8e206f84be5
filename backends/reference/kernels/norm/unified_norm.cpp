// Reference unified normalization: one channel after the other, once all have been asked whether
// the batch is an outlier.
#include "src/ops/norm/unified_norm.h"

#include <algorithm>

#include "backends/reference/kernels/norm/column_sums.h"

namespace keel::reference {
namespace {

using In = UnifiedNormInput;
using Out = UnifiedNormOutput;
using BackIn = UnifiedNormBackwardInput;
using BackOut = UnifiedNormGradient;

// By square roots of neighbours; the number of values is a power of two.
double geometric_mean(const Eigen::ArrayXd& values) {
  const Eigen::Index half = values.size() / 2;
  if (half == 0) return values[0];
  return std::sqrt(geometric_mean(values.head(half)) * geometric_mean(values.tail(half)));
}

// The values that all channels share in a training step.
struct Step {
  MabnPhase phase;
  bool is_outlier, skips;
};

// The unbiased variance of all roots.
double variance_of_roots(const Eigen::ArrayXXd& squares) {
  const Eigen::ArrayXXd roots = squares.sqrt();
  return (roots - roots.mean()).square().sum() / double(roots.size() - 1);
}

// Whether the window with mean(x^2) of this batch has too large a gap between its arithmetic and
// its geometric mean, in any channel.
bool is_outlier(const Binding& b, const UnifiedNormAttrs& attrs, const MabnPhase& phase,
                const Eigen::ArrayXd& batch) {
  if (!attrs.filter || !phase.averages || attrs.m == 1) return false;
  Eigen::ArrayXXd window = matrix(b.inputs[In::kX2], attrs.m, batch.size()).array();
  const double bound = double(attrs.m) * variance_of_roots(window);
  window.row(phase.row) = batch.transpose();
  for (Eigen::Index c = 0; c < batch.size(); ++c) {
    if (window.col(c).mean() - geometric_mean(window.col(c)) > bound) return true;
  }
  return false;
}

Step step_of(const Binding& b, const UnifiedNormAttrs& attrs, const Eigen::ArrayXd& batch) {
  const MabnPhase phase = attrs.phase(*b.inputs[In::kStep].as<std::int32_t>());
  const bool outlier = is_outlier(b, attrs, phase, batch);
  return {phase, outlier, outlier || attrs.m == 1};
}

// One channel's V and ratio.
struct Statistics {
  double v, ratio;
};

// Returns those of this step and writes x2' and v'.
Statistics train(const Binding& b, const UnifiedNormAttrs& attrs, const Step& step, double batch,
                 Eigen::Index c) {
  const double running = vector(b.inputs[In::kV])[c];
  const TensorRef& x2 = b.outputs[Out::kNextX2];
  auto window = matrix(x2, attrs.m, x2.type.shape[1]).col(c);
  window[step.phase.row] = batch;
  const bool averages = step.phase.averages && !step.skips;
  const double v = averages ? geometric_mean(window.array()) : batch;
  if (step.is_outlier) window[step.phase.row] = running;
  vector(b.outputs[Out::kNextV])[c] = attrs.keep * running + (1 - attrs.keep) * v;
  if (!step.phase.clips || step.skips) return {v, 1};
  const double ratio = std::sqrt(v + attrs.eps) / std::sqrt(running + attrs.eps);
  return {v, std::clamp(ratio, 1 / attrs.clip, attrs.clip)};
}

// Copies the states to x2', v' and step', which are changed from there.
void keep_states(const Binding& b) {
  vector(b.outputs[Out::kNextX2]) = vector(b.inputs[In::kX2]);
  vector(b.outputs[Out::kNextV]) = vector(b.inputs[In::kV]);
  *b.outputs[Out::kNextStep].as<std::int32_t>() = *b.inputs[In::kStep].as<std::int32_t>();
}

// mean(x^2) of every channel.
Eigen::ArrayXd mean_squares(const Binding& b, const Kept& kept) {
  const TensorRef& given = b.inputs[In::kSquares];
  Eigen::ArrayXd means(kept.sizes.channels);
  for (Eigen::Index c = 0; c < means.size(); ++c) {
    const Squares of =
        given ? given_squares(given, c, false) : form_squares(b.inputs[In::kX], kept, c, false);
    means[c] = of.kept / of.count;
  }
  return means;
}

// y = x / sqrt(V + eps) * gain + bias
void forward(const Binding& b, const ColumnSizes& sizes, const UnifiedNormAttrs& attrs) {
  const KeptRows rows = kept_rows(b.inputs[In::kMask], sizes);
  const Kept kept{sizes, rows};
  const bool trains = attrs.training && kept_count(b.inputs[In::kSquares], kept) > 0;
  Eigen::ArrayXd batch;
  Step step{};
  if (trains) batch = mean_squares(b, kept), step = step_of(b, attrs, batch);
  if (attrs.training) keep_states(b);
  *b.outputs[Out::kSkips].as<double>() = step.skips ? 1 : 0;
  for (Eigen::Index c = 0; c < sizes.channels; ++c) {
    const Statistics of =
        trains ? train(b, attrs, step, batch[c], c) : Statistics{vector(b.inputs[In::kV])[c], 1};
    const double rstd = 1 / std::sqrt(of.v + attrs.eps);
    const double gain = element_or(b.inputs[In::kGain], c, 1);
    const RowMajor y = kept.read(b.inputs[In::kX], c).array() * rstd * gain +
                       element_or(b.inputs[In::kBias], c, 0);
    write_channel(b.outputs[Out::kY], sizes, rows, c, y);
    vector(b.outputs[Out::kRstd])[c] = rstd;
    vector(b.outputs[Out::kRatio])[c] = of.ratio;
  }
  if (trains) ++*b.outputs[Out::kNextStep].as<std::int32_t>();
}

// Puts this step's mean of g z into gz' and nu', and returns the factor of z in dx.
double push(const Binding& b, const UnifiedNormAttrs& attrs, double batch, Eigen::Index c) {
  const MabnPhase phase = attrs.phase(*b.inputs[BackIn::kStep].as<std::int32_t>());
  const bool skips = *b.inputs[BackIn::kSkips].as<double>() != 0;
  const TensorRef& gz = b.outputs[BackOut::kNextGz];
  const double nu = vector(b.inputs[BackIn::kNu])[c];
  auto window = matrix(gz, attrs.m, gz.type.shape[1]).col(c);
  window[phase.row] = skips ? nu : batch;
  const double mean = phase.averages && !skips ? window.mean() : batch;
  const double next = attrs.keep * nu + (1 - attrs.keep) * mean;
  vector(b.outputs[BackOut::kNextNu])[c] = next;
  return skips ? mean : next;
}

// g = dy * gain * ratio. Training: dx = rstd * (g - z * slope); evaluation: dx = rstd * g.
void backward(const Binding& b, const ColumnSizes& sizes, const UnifiedNormBackwardAttrs& attrs) {
  const KeptRows rows = kept_rows(b.inputs[BackIn::kMask], sizes);
  const Kept kept{sizes, rows};
  if (attrs.training) {
    vector(b.outputs[BackOut::kNextGz]) = vector(b.inputs[BackIn::kGz]);
    vector(b.outputs[BackOut::kNextNu]) = vector(b.inputs[BackIn::kNu]);
  }
  for (Eigen::Index c = 0; c < sizes.channels; ++c) {
    const double rstd = vector(b.inputs[BackIn::kRstd])[c];
    const double ratio = vector(b.inputs[BackIn::kRatio])[c];
    const RowMajor z = kept.read(b.inputs[BackIn::kX], c) * rstd;
    const double factor = element_or(b.inputs[BackIn::kGain], c, 1) * ratio;
    const RowMajor g = kept.read(b.inputs[BackIn::kDy], c) * factor;
    const TensorRef& given = b.inputs[BackIn::kSums];
    const UncentredSums of =
        given ? given_uncentred(given, c, false)
              : form_sums({b.inputs[BackIn::kX], b.inputs[BackIn::kDy], rstd}, kept, c, false);
    const bool trains = attrs.training && of.count > 0;
    const double slope = trains ? push(b, attrs, factor * of.dy_xhat / of.count, c) : 0;
    write_channel(b.outputs[BackOut::kDx], sizes, rows, c, rstd * (g - z * slope));
    if (b.outputs[BackOut::kDgain]) {
      vector(b.outputs[BackOut::kDgain])[c] = of.dy_xhat * ratio;
    }
    if (b.outputs[BackOut::kDbias]) vector(b.outputs[BackOut::kDbias])[c] = of.dy;
  }
}

}  // namespace

Prepared prepare_unified_norm(const NodeContext& context) {
  const auto attrs = context.attrs<UnifiedNormAttrs>();
  const ColumnSizes sizes = column_sizes(context.input(In::kX).shape);
  return kernel_of([=](const Binding& b) { forward(b, sizes, attrs); });
}

Prepared prepare_unified_norm_backward(const NodeContext& context) {
  const auto attrs = context.attrs<UnifiedNormBackwardAttrs>();
  const ColumnSizes sizes = column_sizes(context.input(BackIn::kX).shape);
  return kernel_of([=](const Binding& b) { backward(b, sizes, attrs); });
}

}  // namespace keel::reference
