#include "tests/support/gradcheck.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "backends/reference/backend.h"

namespace keel::test {
namespace {

OpCase copy_of(const OpCase& op_case) {
  OpCase copy{{}, op_case.build, op_case.gradients, op_case.optimize};
  for (const Tensor& t : op_case.inputs) copy.inputs.push_back(t.clone());
  return copy;
}

// The scalar that run_case differentiates: sum over floating outputs of <output, weights>.
double objective(Backend& backend, const OpCase& op_case) {
  OpCase forward = copy_of(op_case);
  forward.gradients = false;
  const Results results = run_case(backend, forward, DType::kF64);
  double total = 0;
  for (std::size_t j = 0; j < results.size(); ++j) {
    const Tensor& y = results.at(fmt::format("y{}", j));
    if (!is_floating(y.dtype())) continue;
    const Tensor weights = random_normal(y.shape(), 900 + std::uint32_t(j));
    for (std::int64_t e = 0; e < y.elements(); ++e) total += y.at(e) * weights.at(e);
  }
  return total;
}

// (f(x + h d) - f(x - h d)) / 2h for a direction d of input i.
double central_difference(const OpCase& op_case, std::size_t i, const Tensor& direction,
                          double step) {
  reference::ReferenceBackend backend;
  double values[2];
  for (int side = 0; side < 2; ++side) {
    OpCase moved = copy_of(op_case);
    std::span<double> x = moved.inputs[i].as<double>();
    const double h = side == 0 ? step : -step;
    for (std::size_t e = 0; e < x.size(); ++e) x[e] += h * direction.as<double>()[e];
    values[side] = objective(backend, moved);
  }
  return (values[0] - values[1]) / (2 * step);
}

double largest(const Tensor& t) {
  double result = 0;
  for (std::int64_t e = 0; e < t.elements(); ++e) result = std::max(result, std::abs(t.at(e)));
  return result;
}

void check_elements(const OpCase& op_case, std::size_t i, const Tensor& gradient,
                    const GradcheckOptions& options) {
  const double scale = std::max(largest(gradient), 1e-3);
  for (std::int64_t e = 0; e < gradient.elements(); ++e) {
    Tensor direction(DType::kF64, gradient.shape());
    direction.as<double>()[std::size_t(e)] = 1;
    const double numeric = central_difference(op_case, i, direction, options.step);
    CAPTURE(i);
    CAPTURE(e);
    CAPTURE(numeric);
    CAPTURE(gradient.at(e));
    CHECK(std::abs(numeric - gradient.at(e)) <= options.tolerance * scale);
  }
}

void check_direction(const OpCase& op_case, std::size_t i, const Tensor& gradient,
                     const GradcheckOptions& options) {
  const Tensor direction = random_normal(gradient.shape(), 77);
  double expected = 0, norm = 0;
  for (std::int64_t e = 0; e < gradient.elements(); ++e) {
    expected += gradient.at(e) * direction.at(e);
    norm += gradient.at(e) * gradient.at(e);
  }
  const double numeric = central_difference(op_case, i, direction, options.step);
  CAPTURE(i);
  CAPTURE(numeric);
  CAPTURE(expected);
  // A random direction meets a gradient of norm |g| with about |g|; that is the scale.
  CHECK(std::abs(numeric - expected) <= options.tolerance * std::max(std::sqrt(norm), 1e-3));
}

}  // namespace

void gradcheck(const OpCase& op_case, const GradcheckOptions& options) {
  reference::ReferenceBackend backend;
  const OpCase forward_and_backward = copy_of(op_case);
  const Results results = run_case(backend, forward_and_backward, DType::kF64);
  for (std::size_t i = 0; i < op_case.inputs.size(); ++i) {
    const bool skipped = std::ranges::find(options.skip, int(i)) != options.skip.end();
    if (skipped || !is_floating(op_case.inputs[i].dtype())) continue;
    REQUIRE(op_case.inputs[i].dtype() == DType::kF64);
    const Tensor& gradient = results.at(fmt::format("d{}", i));
    gradient.elements() <= options.max_elements ? check_elements(op_case, i, gradient, options)
                                                : check_direction(op_case, i, gradient, options);
  }
}

}  // namespace keel::test
