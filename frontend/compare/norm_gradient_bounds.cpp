// Bounds of the backwards of norms: kBackwardBound units in the last place on the terms that cancel
// (docs/numerics.md).
#include <algorithm>
#include <cmath>

#include "frontend/compare/norm_errors.h"
#include "frontend/compare/norm_view.h"
#include "frontend/compare/running_error.h"
#include "src/ops/norm/batch_renorm.h"
#include "src/ops/norm/mabn.h"
#include "src/ops/norm/power_norm.h"
#include "src/ops/norm/weight_norm.h"

namespace keel::compare {
namespace {

using Bounds = NodeBounds;

constexpr double kBackward = kBackwardBound * 2 * kEps;

// The terms that make up the dx of one group.
struct GroupTerms {
  double largest_g = 0, largest_xhat = 0, products = 0;  // products: the sum of |g xhat|
  double sum_g = 0, kept = 0;                            // sum_g: of |g|

  double mean_product() const { return products / std::max(kept, 1.0); }
  double mean_g() const { return sum_g / std::max(kept, 1.0); }
};

// The terms of the sums that give the parameters' gradients, one per feature.
struct ParameterTerms {
  std::vector<double> gain, bias;
};

class NormGradient {
 public:
  NormGradient(const ComparedNode& n, Bounds& bounds)
      : n_(n), bounds_(bounds), view_(n, true), terms_(view_.groups()) {
    for (std::size_t e = 0; e < view_.size(); ++e) take(e);
  }

  void bound_dx() {
    if (view_.is_scaled()) return bound_scaled_dx();
    for (std::size_t e = 0; e < view_.size(); ++e) {
      const std::size_t k = view_.group(e);
      bounds_[0].as<double>()[e] = kBackward * dx_scale(k) + of_centre_in_dx(k) + kTiny;
    }
  }

  // dgain is the sum of dy xhat: an xhat that a mean was subtracted for is off by eps of 1. `moved`
  // is added to xhat.
  void bound_parameters(std::span<const double> moved = {}) {
    for (int output : {1, 2}) {
      if (output < int(n_.outputs.size())) bound_parameter(output, moved);
    }
  }

  const NormView& view() const { return view_; }
  const GroupTerms& terms(std::size_t k) const { return terms_[k]; }
  double r(std::size_t k) const { return of(view_.places().r, k, 1); }

 private:
  double of(int place, std::size_t k, double otherwise) const {
    return place >= 0 && n_.has(place) ? std::abs(n_.in(place)[k]) : otherwise;
  }
  double dy(std::size_t e) const { return std::abs(n_.in(view_.places().dy)[e]); }

  void take(std::size_t e) {
    GroupTerms& t = terms_[view_.group(e)];
    const double g = dy(e) * std::abs(view_.gain(e)) * view_.phi(e);
    const double xhat = std::abs(view_.xhat(e));
    t.largest_g = std::max(t.largest_g, g);
    t.largest_xhat = std::max(t.largest_xhat, xhat);
    t.products += g * xhat;
    t.sum_g += g;
    t.kept += view_.is_kept(e) ? 1 : 0;
  }

  // |slope|, or more: a state, an average of former steps, or the mean of g xhat.
  double slope(std::size_t k) const {
    double slope = of(view_.places().slope, k, terms_[k].mean_product());
    if (n_.node().op == &kMabnBackward) {
      for (std::size_t i = k; i < n_.in(MabnBackwardInput::kGz).size(); i += view_.groups()) {
        slope = std::max(slope, std::abs(n_.in(MabnBackwardInput::kGz)[i]));
      }
    }
    return slope;
  }

  double factor(std::size_t k) const {
    return of(view_.places().factor, k, std::abs(view_.rstd(k))) * r(k);
  }
  // The saved mean is rounded, and kernels may put that right or not: how far xhat is off by it.
  double of_centre(std::size_t k) const { return kEps * std::abs(view_.mean(k) * view_.rstd(k)); }
  // In -slope xhat, slope being the mean of g xhat.
  double of_centre_in_dx(std::size_t k) const {
    const GroupTerms& t = terms_[k];
    return factor(k) * of_centre(k) * (slope(k) + t.largest_xhat * t.mean_g());
  }
  double dx_scale(std::size_t k) const {
    return factor(k) * std::max(terms_[k].largest_g, terms_[k].largest_xhat * slope(k));
  }

  // dx = row_rstd (dz - z mean(dz z)) of what dx is without a scaling, dz.
  void bound_scaled_dx() {
    const std::size_t width = view_.scaling_width();
    for (std::size_t first = 0; first < view_.size(); first += width) {
      double mean = 0;
      for (std::size_t e = first; e < first + width; ++e) {
        mean += dx_scale(view_.group(e)) * scaled(e) / double(width);
      }
      for (std::size_t e = first; e < first + width; ++e) {
        bounds_[0].as<double>()[e] =
            2 * kBackward * view_.scaling(e) * (dx_scale(view_.group(e)) + scaled(e) * mean) +
            kTiny;
      }
    }
  }
  double scaled(std::size_t e) const { return std::abs(n_.in(0)[e]) * view_.scaling(e); }

  void bound_parameter(int output, std::span<const double> moved) {
    const auto bound = bounds_[std::size_t(output)].as<double>();
    if (bound.empty()) return;
    for (std::size_t e = 0; e < view_.size(); ++e) {
      const std::size_t k = view_.group(e), p = bound.size() == 1 ? 0 : view_.feature(e);
      const double unit = view_.is_centred() ? 1 : 0;
      const double xhat =
          std::max(unit, std::abs(view_.xhat(e))) * r(k) + (moved.empty() ? 0 : std::abs(moved[k]));
      bound[p] += kBackward * dy(e) * (output == 1 ? xhat : 1);
      if (output == 1) bound[p] += dy(e) * of_centre(k) * r(k);
    }
    for (double& b : bound) b += kTiny;
  }

  const ComparedNode& n_;
  Bounds& bounds_;
  NormView view_;
  std::vector<GroupTerms> terms_;
};

void gradient(const ComparedNode& n, Bounds& bounds) {
  NormGradient norm(n, bounds);
  norm.bound_dx();
  norm.bound_parameters();
}

void batch_renorm_backward(const ComparedNode& n, Bounds& bounds) {
  NormGradient norm(n, bounds);
  norm.bound_dx();
  norm.bound_parameters(n.in(BatchRenormBackwardInput::kD));
}

// gz' has the mean of g z in one row; the others are copies.
void mabn_backward(const ComparedNode& n, Bounds& bounds) {
  NormGradient norm(n, bounds);
  norm.bound_dx();
  norm.bound_parameters();
  const auto bound = bounds[MabnGradient::kNextGz].as<double>();
  for (std::size_t i = 0; i < bound.size(); ++i) {
    const std::size_t k = i % norm.view().groups();
    bound[i] = kBackward * norm.terms(k).mean_product() * norm.r(k) + kTiny;
  }
}

// nu' = nu (1 - (1 - alpha_b) Gamma) + (1 - alpha_b) Lambda
void power_norm_backward(const ComparedNode& n, Bounds& bounds) {
  using In = PowerNormBackwardInput;
  NormGradient norm(n, bounds);
  norm.bound_dx();
  norm.bound_parameters();
  const auto& attrs = n.attrs<PowerNormBackwardAttrs>();
  const auto bound = bounds[PowerNormGradient::kNextNu].as<double>();
  for (std::size_t k = 0; k < bound.size(); ++k) {
    const double share = 1 - attrs.alpha_b, gamma = std::abs(n.in(In::kGamma)[k]);
    bound[k] = kBackward * (std::abs(n.in(In::kNu)[k]) * (1 + share * gamma) +
                            share * norm.terms(k).mean_product()) +
               kTiny;
  }
}

// dg = sum of dw u;  dv = g / n (dw - u dg)
void weight_norm_backward(const ComparedNode& n, Bounds& bounds) {
  using In = WeightNormBackwardInput;
  const ColumnSizes sizes = weight_sizes(n.input(In::kV).shape(), n.attrs<WeightNormAttrs>());
  const auto v = n.in(In::kV), dw = n.in(In::kDw);
  const auto unit = [&](std::size_t e) {
    return e / std::size_t(sizes.inner) % std::size_t(sizes.channels);
  };
  const auto u = [&](std::size_t e) { return std::abs(v[e] * n.in(In::kRstd)[unit(e)]); };
  const auto of_dg = bounds[WeightNormGradient::kDg].as<double>();
  for (std::size_t e = 0; e < v.size(); ++e) of_dg[unit(e)] += std::abs(dw[e]) * u(e);
  for (std::size_t e = 0; e < v.size(); ++e) {
    const double factor = std::abs(n.in(In::kG)[unit(e)] * n.in(In::kRstd)[unit(e)]);
    bounds[WeightNormGradient::kDv].as<double>()[e] =
        kBackward * factor * (std::abs(dw[e]) + u(e) * of_dg[unit(e)]) + kTiny;
  }
  for (double& b : of_dg) b = kBackward * b + kTiny;
}

}  // namespace

void add_norm_gradient_rules(BoundRules& rules) {
  for (auto name :
       {"layer_norm_backward", "rms_norm_backward", "detach_norm_backward", "ada_norm_backward",
        "scale_norm_backward", "group_norm_backward", "group_scaling_backward",
        "instance_norm_backward", "batch_norm_backward", "pn_v_backward"}) {
    rules[name] = gradient;
  }
  rules["batch_renorm_backward"] = batch_renorm_backward;
  rules["mabn_backward"] = mabn_backward;
  rules["power_norm_backward"] = power_norm_backward;
  rules["weight_norm_backward"] = weight_norm_backward;
}

}  // namespace keel::compare
