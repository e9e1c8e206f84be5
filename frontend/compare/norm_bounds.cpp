// Bounds of the forwards of norms: kForwardBound units in the last place on the scales of
// docs/numerics.md.
#include <algorithm>
#include <cmath>

#include "frontend/compare/norm_errors.h"
#include "frontend/compare/norm_view.h"
#include "frontend/compare/running_error.h"
#include "src/ops/norm/batch_norm.h"
#include "src/ops/norm/batch_renorm.h"
#include "src/ops/norm/mabn.h"
#include "src/ops/norm/weight_norm.h"

namespace keel::compare {
namespace {

using Bounds = NodeBounds;

constexpr double kForward = kForwardBound * 2 * kEps;

double larger(double a, double b) { return std::max(std::abs(a), std::abs(b)); }

// y, on max(1, |xhat|) gain, |y| and |bias|; `factor` multiplies xhat, `moved` is added to it.
struct Affine {
  std::span<const double> factor = {}, moved = {};  // one a group; empty: 1 and 0
};
void bound_y(const ComparedNode& n, const NormView& view, const Affine& affine, Bounds& bounds) {
  const int bias = view.places().bias;
  for (std::size_t e = 0; e < view.size(); ++e) {
    const std::size_t k = view.group(e);
    const double factor = affine.factor.empty() ? 1 : std::abs(affine.factor[k]);
    const double moved = affine.moved.empty() ? 0 : affine.moved[k];
    const double unit = std::max(1.0, std::abs(view.xhat(e))) * view.phi(e) * factor + moved;
    const double shift = bias >= 0 && n.has(bias) ? n.in(bias)[view.feature(e)] : 0;
    bounds[0].as<double>()[e] =
        kForward * std::max(larger(n.out(0)[e], shift), std::abs(view.gain(e)) * unit) + kTiny;
  }
}

// A statistic that is a sum of squares, or what is made of one, on its own size: twice the bound of
// rstd, which takes the root. Where it follows a state of the same shape, that counts, too.
void bound_statistic(const ComparedNode& n, int output, int state, Bounds& bounds) {
  const bool follows = state >= 0 && n.has(state);
  for (std::size_t i = 0; i < n.out(output).size(); ++i) {
    const double former = follows ? n.in(state)[i] : 0;
    bounds[std::size_t(output)].as<double>()[i] =
        2 * kForward * larger(n.out(output)[i], former) + kTiny;
  }
}

// A mean, on its size and the deviation; where it follows a state, that counts, too.
void bound_mean(const ComparedNode& n, const NormView& view, int output, int state,
                Bounds& bounds) {
  for (std::size_t i = 0; i < n.out(output).size(); ++i) {
    const double former = state >= 0 && n.has(state) ? n.in(state)[i] : 0;
    const double size =
        std::max({larger(n.out(output)[i], former), std::abs(view.mean(i)), view.deviation(i)});
    bounds[std::size_t(output)].as<double>()[i] = kForward * size + kTiny;
  }
}

void bound_statistics(const ComparedNode& n, const NormView& view, Bounds& bounds) {
  for (int output = 1; output < int(n.outputs.size()); ++output) {
    if (n.outputs[std::size_t(output)].dtype() != DType::kF64) continue;
    if (output == view.places().mean) {
      bound_mean(n, view, output, -1, bounds);
    } else {
      bound_statistic(n, output, -1, bounds);
    }
  }
}

void norm(const ComparedNode& n, Bounds& bounds) {
  const NormView view(n, false);
  bound_y(n, view, {}, bounds);
  bound_statistics(n, view, bounds);
}

void batch_norm(const ComparedNode& n, Bounds& bounds) {
  norm(n, bounds);
  const NormView view(n, false);
  bound_mean(n, view, BatchNormOutput::kNextRunningMean, BatchNormInput::kRunningMean, bounds);
  bound_statistic(n, BatchNormOutput::kNextRunningVar, BatchNormInput::kRunningVar, bounds);
}

// d = (mean - running_mean) / running_std has the errors of its means, and y has those of d.
void batch_renorm(const ComparedNode& n, Bounds& bounds) {
  using In = BatchRenormInput;
  using Out = BatchRenormOutput;
  const NormView view(n, false);
  std::vector<double> moved(view.groups());
  for (std::size_t k = 0; k < moved.size(); ++k) {
    const double mean = std::abs(view.mean(k)) + std::abs(n.in(In::kRunningMean)[k]);
    moved[k] = std::abs(n.out(Out::kD)[k]) +
               (mean + view.deviation(k)) / std::abs(n.in(In::kRunningStd)[k]);
  }
  bound_y(n, view, {n.out(Out::kR), moved}, bounds);
  bound_statistics(n, view, bounds);
  for (std::size_t k = 0; k < moved.size(); ++k) {
    bounds[Out::kD].as<double>()[k] = kForward * moved[k] + kTiny;
  }
  bound_mean(n, view, Out::kNextRunningMean, In::kRunningMean, bounds);
  bound_statistic(n, Out::kNextRunningStd, In::kRunningStd, bounds);
}

void mabn(const ComparedNode& n, Bounds& bounds) {
  const NormView view(n, false);
  bound_y(n, view, {n.out(MabnOutput::kR), {}}, bounds);
  bound_statistics(n, view, bounds);
}

// w = g v / |v| and 1 / |v|: a sum of squares of one sign, on their own sizes.
void weight_norm(const ComparedNode& n, Bounds& bounds) {
  for (int output : {0, 1}) {
    for (std::size_t i = 0; i < n.out(output).size(); ++i) {
      bounds[std::size_t(output)].as<double>()[i] = kForward * std::abs(n.out(output)[i]) + kTiny;
    }
  }
}

}  // namespace

void add_norm_rules(BoundRules& rules) {
  for (auto name : {"layer_norm", "rms_norm", "detach_norm", "ada_norm", "scale_norm", "group_norm",
                    "group_scaling", "instance_norm", "pn_v", "power_norm"}) {
    rules[name] = norm;
  }
  rules["batch_norm"] = batch_norm;
  rules["batch_renorm"] = batch_renorm;
  rules["mabn"] = mabn;
  rules["weight_norm"] = weight_norm;
}

}  // namespace keel::compare
