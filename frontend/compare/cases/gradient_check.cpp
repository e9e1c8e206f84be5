#include "frontend/compare/cases/gradient_check.h"

#include <algorithm>
#include <cmath>

namespace keel::compare {
namespace {

// The scalar that run_case differentiates is linear in the outputs: it is that of the outputs,
// weighted by the numbers that run_case draws.
double objective(Backend& backend, const OpCase& op_case) {
  double total = 0;
  for (const auto& [name, y] : run_case(backend, op_case, DType::kF64)) {
    if (!is_floating(y.dtype())) continue;
    const Tensor weights =
        random_normal(y.shape(), 900 + std::uint32_t(std::stoul(name.substr(1))));
    for (std::int64_t e = 0; e < y.elements(); ++e) total += y.at(e) * weights.at(e);
  }
  return total;
}

// The forward of the case with an input moved by h in a direction.
OpCase moved(const OpCase& from, std::size_t input, const Tensor& direction, double h) {
  OpCase copy{{}, from.build, false, from.optimize};
  for (const Tensor& t : from.inputs) copy.inputs.push_back(t.clone());
  const std::span<double> x = copy.inputs[input].as<double>();
  for (std::size_t e = 0; e < x.size(); ++e) x[e] += h * direction.as<double>()[e];
  return copy;
}

// The central difference of the forward along a direction of an input.
double numeric_gradient(Backend& backend, const OpCase& op_case, std::size_t input,
                        const Tensor& direction, double step) {
  const double ahead = objective(backend, moved(op_case, input, direction, step));
  return (ahead - objective(backend, moved(op_case, input, direction, -step))) / (2 * step);
}

double product_of(const Tensor& a, const Tensor& b) {
  double sum = 0;
  for (std::int64_t e = 0; e < a.elements(); ++e) sum += a.at(e) * b.at(e);
  return sum;
}

double error_of_input(Backend& backend, const OpCase& op_case, std::size_t input,
                      const Tensor& gradient, const GradientCheck& how) {
  const auto error_along = [&](const Tensor& direction) {
    const double numeric = numeric_gradient(backend, op_case, input, direction, how.step);
    const double error = std::abs(numeric - product_of(gradient, direction));
    return std::isnan(error) ? INFINITY : error;
  };
  // A random direction meets a gradient of length |g| with about |g|.
  if (gradient.elements() > how.most_elements) {
    const double length = std::sqrt(product_of(gradient, gradient));
    return error_along(random_normal(gradient.shape(), 77)) / std::max(length, 1e-3);
  }
  double worst = 0, largest = 1e-3;
  for (std::int64_t e = 0; e < gradient.elements(); ++e) {
    Tensor direction(DType::kF64, gradient.shape());
    direction.as<double>()[std::size_t(e)] = 1;
    worst = std::max(worst, error_along(direction));
    largest = std::max(largest, std::abs(gradient.at(e)));
  }
  return worst / largest;
}

}  // namespace

double gradient_error(Backend& backend, const OpCase& op_case, const GradientCheck& how) {
  const Results results = run_case(backend, op_case, DType::kF64);
  double worst = 0;
  for (std::size_t i = 0; i < op_case.inputs.size(); ++i) {
    if (!is_floating(op_case.inputs[i].dtype())) continue;
    if (how.input >= 0 && how.input != int(i)) continue;
    const Tensor& gradient = results.at(fmt::format("d{}", i));
    worst = std::max(worst, error_of_input(backend, op_case, i, gradient, how));
  }
  return worst;
}

}  // namespace keel::compare
