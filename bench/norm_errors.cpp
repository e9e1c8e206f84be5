#include "bench/norm_errors.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace keel::bench {
namespace {

// |got - expected| / scale in units of eps; NaN must be met by NaN.
double error(double got, double expected, double scale) {
  constexpr double kEps = std::numeric_limits<float>::epsilon();
  constexpr double kLargest = std::numeric_limits<float>::max();
  if (std::isnan(got) || std::isnan(expected)) {
    return std::isnan(got) == std::isnan(expected) ? 0 : INFINITY;
  }
  if (std::abs(expected) > kLargest) {
    return got * std::copysign(1, expected) >= kLargest ? 0 : INFINITY;
  }
  return got == expected ? 0 : std::abs(got - expected) / (scale * kEps);
}

// One comparison of a result with the expected one.
class Judge {
 public:
  Judge(const NormCase& c, const NormData& data, const NormResult& got, const NormResult& expected)
      : c_(c), data_(data), got_(got), expected_(expected), terms_(norm_terms(*expected.op)) {
    const std::int64_t groups = expected.outputs[std::size_t(terms_.rstd)].elements();
    check(groups == c.groups, ErrorKind::kUsage, "[{}] groups: expected {}, got {}",
          expected.op->name, c.groups, groups);
  }

  NormErrors errors() {
    NormErrors errors;
    errors.forward = forward();
    gain_scale_.assign(std::size_t(c_.parameter_shape().elements()), 0);
    bias_scale_ = gain_scale_;
    for (std::int64_t k = 0; k < c_.groups; ++k) errors.dx = std::max(errors.dx, dx(k));
    errors.parameters = std::max(parameter(AffineGradient::kDgain, gain_scale_),
                                 parameter(AffineGradient::kDbias, bias_scale_));
    return errors;
  }

 private:
  bool is_centred() const { return terms_.mean.has_value(); }
  double statistic(int place, std::int64_t k) const {
    return expected_.outputs[std::size_t(place)].at(k);
  }
  double xhat(std::int64_t k, std::int64_t e) const {
    const double mean = is_centred() ? statistic(*terms_.mean, k) : 0;
    return (data_.x.at(c_.at(k, e)) - mean) * statistic(terms_.rstd, k);
  }
  double gain(std::int64_t k, std::int64_t e) const {
    if (!data_.gain) return 1;
    const std::int64_t p = data_.gain->elements() == 1 ? 0 : c_.parameter(k, e);
    return expected_.offset + data_.gain->at(p);
  }

  double forward() const {
    double largest = 0;
    for (std::size_t j = 0; j < expected_.outputs.size(); ++j) {
      for (std::int64_t i = 0; i < expected_.outputs[j].elements(); ++i) {
        const double value = expected_.outputs[j].at(i);
        const double deviation = j > 0 && is_centred() ? 1 / statistic(terms_.rstd, i) : 0;
        const double scale =
            int(j) == terms_.rstd ? std::abs(value) : std::max({1.0, std::abs(value), deviation});
        largest = std::max(largest, error(got_.outputs[j].at(i), value, scale));
      }
    }
    return largest;
  }

  // Also adds group k to the scales of the parameters.
  double dx(std::int64_t k) {
    double largest_g = 0, largest_xhat = 0, products = 0;
    for (std::int64_t e = 0; e < c_.n; ++e) {
      const double dy = data_.dy.at(c_.at(k, e)), g = dy * gain(k, e), z = xhat(k, e);
      largest_g = std::max(largest_g, std::abs(g));
      largest_xhat = std::max(largest_xhat, std::abs(z));
      products += g * z;
      const auto p = std::size_t(c_.parameter(k, e));
      gain_scale_[p] += std::abs(dy) * (is_centred() ? std::max(1.0, std::abs(z)) : std::abs(z));
      bias_scale_[p] += std::abs(dy);
    }
    const double slope =
        terms_.slope_state ? data_.state[*terms_.slope_state].at(k) : products / double(c_.n);
    const double factor = statistic(terms_.factor, k) * (terms_.r ? statistic(*terms_.r, k) : 1);
    const double scale = factor * std::max(largest_g, largest_xhat * std::abs(slope));
    double largest = 0;
    for (std::int64_t e = 0; e < c_.n; ++e) {
      const std::int64_t i = c_.at(k, e);
      largest = std::max(largest, error(got_.gradients[AffineGradient::kDx].at(i),
                                        expected_.gradients[AffineGradient::kDx].at(i), scale));
    }
    return largest;
  }

  double parameter(AffineGradient::Place p, const std::vector<double>& scale) const {
    const Tensor& values = expected_.gradients[p];
    double largest = 0;
    const double of_all = std::accumulate(scale.begin(), scale.end(), 0.0);
    for (std::int64_t i = 0; i < values.elements(); ++i) {
      const double of_i = values.elements() == 1 ? of_all : scale[std::size_t(i)];
      const double floor = std::numeric_limits<float>::min();  // below it floats are less precise
      largest =
          std::max(largest, error(got_.gradients[p].at(i), values.at(i), std::max(of_i, floor)));
    }
    return largest;
  }

  const NormCase& c_;
  const NormData& data_;
  const NormResult &got_, &expected_;
  const NormTerms terms_;
  std::vector<double> gain_scale_, bias_scale_;
};

// Compares a result of a norm of elements with the expected one.
class CurveJudge {
 public:
  CurveJudge(const NormCase& c, const NormData& data, const NormResult& got,
             const NormResult& expected)
      : c_(c), data_(data), got_(got), expected_(expected), curve_(*expected.op->norm->curve) {}

  NormErrors errors() {
    std::vector<double> gain(std::size_t(c_.parameter_shape().elements())), bias = gain;
    // Sums of numbers that float32 may not hold are not told from 0.
    std::vector<double> alpha{1e-30}, shift{1e-30};
    NormErrors errors;
    for (std::int64_t k = 0; k < c_.groups; ++k) {
      for (std::int64_t e = 0; e < c_.n; ++e) {
        const std::int64_t i = c_.at(k, e), p = c_.parameter(k, e);
        const double ax = number("alpha") * data_.x.at(i), u = ax + number("shift");
        const double dy = std::abs(data_.dy.at(i)),
                     g = data_.gain ? dy * std::abs(data_.gain->at(p)) : dy;
        const double of_u = curve_.slope(u), k_of = g * of_u * (1 + u * u);
        const double y = expected_.outputs[0].at(i);
        errors.forward =
            std::max(errors.forward, error(got_.outputs[0].at(i), y, std::max(1.0, std::abs(y))));
        errors.dx =
            std::max(errors.dx, of_gradient(AffineInput::kX, i, std::abs(number("alpha")) * g));
        gain[std::size_t(p)] += dy * std::max(std::abs(curve_.value(u)),
                                              of_u * (std::abs(ax) + std::abs(number("shift"))));
        bias[std::size_t(p)] += dy;
        shift[0] += k_of;
        alpha[0] += of_u > 0 ? k_of * std::abs(data_.x.at(i)) : 0;
      }
    }
    errors.parameters = std::max({of_sums("gain", gain), of_sums("bias", bias),
                                  of_sums("alpha", alpha), of_sums("shift", shift)});
    return errors;
  }

 private:
  double number(const std::string& name) const {
    const auto found = expected_.more.find(name);
    return found == expected_.more.end() ? 0 : found->second.at(0);
  }
  double of_gradient(int input, std::int64_t i, double scale) const {
    return error(got_.gradients[std::size_t(input)].at(i),
                 expected_.gradients[std::size_t(input)].at(i), scale);
  }
  double of_sums(std::string_view parameter, const std::vector<double>& scale) const {
    const int input = input_place(*expected_.op, parameter);
    double largest = 0;
    const std::int64_t count = input < 0 ? 0 : expected_.gradients[std::size_t(input)].elements();
    for (std::int64_t i = 0; i < count; ++i) {
      largest = std::max(largest, of_gradient(input, i, scale[std::size_t(i)]));
    }
    return largest;
  }

  const NormCase& c_;
  const NormData& data_;
  const NormResult &got_, &expected_;
  const NormCurve& curve_;
};

}  // namespace

NormTerms norm_terms(const OpInfo& forward) {
  check(forward.norm.has_value(), ErrorKind::kUsage, "{} is no norm of x", forward.name);
  const auto place = [&](std::string_view name) {
    const int found = output_place(forward, name);
    return found < 0 ? std::nullopt : std::optional(found);
  };
  const auto rstd = place("rstd");
  check(rstd.has_value(), ErrorKind::kUsage, "{} has no output rstd", forward.name);
  NormTerms terms{.mean = place("mean"), .rstd = *rstd};
  terms.factor = place("rdx").value_or(terms.rstd);
  if (terms.mean) terms.r = place("r");  // without that of mabn the scale is stricter
  // Beside gz, nu is moved before it is used.
  if (input_place(forward, "nu") >= 0 && input_place(forward, "gz") < 0) terms.slope_state = 1;
  return terms;
}

NormErrors norm_errors(const NormCase& c, const NormData& data, const NormResult& got,
                       const NormResult& expected) {
  if (expected.op->norm && expected.op->norm->curve != nullptr) {
    return CurveJudge(c, data, got, expected).errors();
  }
  return Judge(c, data, got, expected).errors();
}

}  // namespace keel::bench
