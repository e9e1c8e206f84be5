// Bounds of the density of a mixture of normal distributions of the plane.
#include <algorithm>
#include <cmath>

#include "frontend/compare/bounds/node_bounds.h"
#include "frontend/compare/bounds/running_error.h"
#include "src/ops/mixture_density.h"

namespace keel::compare {
namespace {

// The density is computed in double and rounded once; what double adds is `noise` of the sizes of
// its terms: some roundings of 2^-53 each, by the reference's formulas as well.
constexpr double kNoise = 0x1p-48;

// One point: the shares of its components, and what double may add to the logs of their densities.
struct MixtureRow {
  std::vector<double> share, noise, log_sizes;
  double of_all = 0;  // of the log of their sum

  MixtureRow(const ComparedNode& n, std::int64_t i) {
    using In = MixtureInput;
    using Part = MixturePart;
    const auto& attrs = n.attrs<MixtureAttrs>();
    const MixtureSizes sizes = mixture_sizes(n.input(In::kY).shape());
    const std::int64_t m = sizes.components;
    const double* y = n.in(In::kY).data() + i * (1 + Part::kCount * m) + 1;
    const double* x = n.in(In::kPoints).data() + 3 * i;
    std::vector<double> logs;
    for (std::int64_t j = 0; j < m; ++j) {
      const double s1 = std::max(y[Part::kSigma1 * m + j], attrs.least_log_sigma);
      const double s2 = std::max(y[Part::kSigma2 * m + j], attrs.least_log_sigma);
      const double r = std::clamp(y[Part::kRho * m + j], -attrs.largest_rho, attrs.largest_rho);
      const double a = (x[0] - y[Part::kMean1 * m + j]) * std::exp(-s1);
      const double b = (x[1] - y[Part::kMean2 * m + j]) * std::exp(-s2);
      const double c = std::cosh(r) * std::cosh(r), rho = std::tanh(r);
      const double weight = y[j];
      logs.push_back(weight - s1 - s2 + std::log(c) / 2 -
                     c * (a * a + b * b - 2 * rho * a * b) / 2);
      along.push_back(c * (std::abs(a) + std::abs(b)));
      log_sizes.push_back(1 + std::abs(weight) + std::abs(s1) + std::abs(s2) + std::abs(r) +
                          c * (a * a + b * b + 2 * std::abs(a * b)));
      scale1.push_back(std::exp(-s1));
      scale2.push_back(std::exp(-s2));
      distance.push_back(std::abs(a) + std::abs(b) + 1);
    }
    const double largest = *std::ranges::max_element(logs);
    double sum = 0;
    for (double log : logs) sum += std::exp(log - largest);
    for (std::size_t j = 0; j < logs.size(); ++j) {
      share.push_back(std::exp(logs[j] - largest) / sum);
      noise.push_back(kNoise * log_sizes[j]);
      of_all += share[j] * noise[j];
    }
    of_all += kNoise * std::abs(largest + std::log(sum));
  }
  std::vector<double> along, scale1, scale2, distance;
};

bool counts(const ComparedNode& n, std::int64_t i) {
  return !n.has(MixtureInput::kMask) ||
         n.input(MixtureInput::kMask).as<std::uint8_t>()[std::size_t(i)] != 0;
}

void mixture_density(const ComparedNode& n, NodeBounds& bounds) {
  using Out = MixtureOutput;
  const std::int64_t rows = n.input(MixtureInput::kY).shape()[0];
  for (std::int64_t i = 0; i < rows; ++i) {
    if (!counts(n, i)) continue;
    bounds[Out::kNll].as<double>()[std::size_t(i)] =
        kEps * std::abs(n.out(Out::kNll)[std::size_t(i)]) + 2 * MixtureRow(n, i).of_all + kNoise +
        kTiny;
  }
}

void mixture_density_backward(const ComparedNode& n, NodeBounds& bounds) {
  using Part = MixturePart;
  const MixtureSizes sizes = mixture_sizes(n.input(MixtureInput::kY).shape());
  const std::int64_t m = sizes.components, width = 1 + Part::kCount * m;
  for (std::int64_t i = 0; i < sizes.rows; ++i) {
    if (!counts(n, i)) continue;
    const MixtureRow row(n, i);
    const double g = std::abs(n.in(MixtureInput::kDnll)[std::size_t(i)]);
    double* const bound = bounds[0].as<double>().data() + i * width;
    const double* const d = n.out(0).data() + i * width;
    bound[0] = g * kNoise;
    for (std::int64_t k = 0; k < m; ++k) {
      const auto j = std::size_t(k);
      const double gamma = g * row.share[j], relative = row.noise[j] + row.of_all + kNoise;
      const double along = gamma * row.along[j] * relative, by_hat = along * row.distance[j];
      double* const part = bound + 1 + k;
      part[Part::kPi * m] = g * (row.of_all + kNoise) + gamma * relative;
      part[Part::kMean1 * m] = along * row.scale1[j];
      part[Part::kMean2 * m] = along * row.scale2[j];
      for (const int of : {Part::kSigma1, Part::kSigma2, Part::kRho}) {
        part[of * m] = by_hat + gamma * relative;
      }
    }
    for (std::int64_t c = 0; c < width; ++c) bound[c] += kEps * std::abs(d[c]) + kTiny;
  }
}

}  // namespace

void add_mixture_rules(BoundRules& rules) {
  rules["mixture_density"] = mixture_density;
  rules["mixture_density_backward"] = mixture_density_backward;
}

}  // namespace keel::compare
