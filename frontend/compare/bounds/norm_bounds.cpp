// Bounds of the forwards of norms: kForwardBound units in the last place on the scales of
// docs/numerics.md.
#include <algorithm>
#include <cmath>

#include "frontend/compare/bounds/norm_view.h"
#include "frontend/compare/bounds/running_error.h"
#include "src/ops/norm/norm_ops.h"

namespace keel::compare {
namespace {

using Bounds = NodeBounds;

constexpr double kForward = kForwardBound * 2 * kEps;

double larger(double a, double b) { return std::max(std::abs(a), std::abs(b)); }

// The size on which d = (mean - running_mean) / running_std is bounded, and y = r xhat + d with it:
// d has the errors of its means.
double size_of_d(const ComparedNode& n, const NormView& view, std::size_t k) {
  const int d = view.places().d;
  if (d < 0) return 0;
  const OpInfo& op = *n.node().op;
  const auto state = [&](std::string_view name) { return n.in(input_place(op, name))[k]; };
  const double mean = std::abs(view.mean(k)) + std::abs(state("running_mean"));
  return std::abs(n.out(d)[k]) + (mean + view.deviation(k)) / std::abs(state("running_std"));
}

// y, on max(1, |xhat|) gain, |y| and |bias|.
void bound_y(const ComparedNode& n, const NormView& view, Bounds& bounds) {
  const int bias = view.places().bias, r = view.places().r;
  for (std::size_t e = 0; e < view.size(); ++e) {
    const std::size_t k = view.group(e);
    const double factor = r < 0 ? 1 : std::abs(n.out(r)[k]);
    const double unit =
        std::max(1.0, std::abs(view.xhat(e))) * view.phi(e) * factor + size_of_d(n, view, k);
    const double shift = bias >= 0 && n.has(bias) ? n.in(bias)[view.feature(e)] : 0;
    bounds[0].as<double>()[e] =
        kForward * std::max(larger(n.out(0)[e], shift), std::abs(view.gain(e)) * unit) + kTiny;
  }
}

// A statistic that is a sum of squares, or what is made of one, on its own size: twice the bound of
// rstd, which takes the root. A state counts, too, from which a difference was taken.
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

// The place of the state S from which an output "next_S" takes a difference: a mean, or a
// deviation. -1: the output is no such state's next value.
int followed_state(const OpInfo& op, int output) {
  constexpr std::string_view kNext = "next_";
  const std::string_view name = op.output_names[std::size_t(output)];
  const bool follows = name.ends_with("mean") || name.ends_with("std");
  return follows && name.starts_with(kNext) ? input_place(op, name.substr(kNext.size())) : -1;
}

void norm(const ComparedNode& n, Bounds& bounds) {
  const NormView view(n, false);
  const NormPlaces& places = view.places();
  bound_y(n, view, bounds);
  for (int output = 1; output < int(n.outputs.size()); ++output) {
    if (n.outputs[std::size_t(output)].dtype() != DType::kF64) continue;
    const int state = followed_state(*n.node().op, output);
    const bool is_mean = n.node().op->output_names[std::size_t(output)].ends_with("mean");
    if (is_mean) {
      bound_mean(n, view, output, state, bounds);
    } else if (output == places.d) {
      for (std::size_t k = 0; k < view.groups(); ++k) {
        bounds[std::size_t(output)].as<double>()[k] = kForward * size_of_d(n, view, k) + kTiny;
      }
    } else {
      bound_statistic(n, output, state, bounds);
    }
  }
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
  for (const OpInfo* op : norm_ops()) {
    if (op->norm) rules[op->name] = norm;
  }
  rules["weight_norm"] = weight_norm;
}

}  // namespace keel::compare
