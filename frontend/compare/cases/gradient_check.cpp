#include "frontend/compare/cases/gradient_check.h"

#include <algorithm>
#include <cmath>

namespace keel::compare {
namespace {

// The case with one element moved by h.
OpCase moved(const OpCase& from, std::size_t input, std::size_t element, double h) {
  OpCase copy{{}, from.build, false, from.optimize};
  for (const Tensor& t : from.inputs) copy.inputs.push_back(t.clone());
  copy.inputs[input].as<double>()[element] += h;
  return copy;
}

// The scalar that run_case differentiates is linear in the outputs: its difference is that of the
// outputs, weighted by the numbers that run_case draws.
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

double largest(const Tensor& t) {
  double result = 0;
  for (std::int64_t e = 0; e < t.elements(); ++e) result = std::max(result, std::abs(t.at(e)));
  return result;
}

}  // namespace

double gradient_error(Backend& backend, const OpCase& op_case, double step) {
  const Results results = run_case(backend, op_case, DType::kF64);
  double worst = 0;
  for (std::size_t i = 0; i < op_case.inputs.size(); ++i) {
    if (!is_floating(op_case.inputs[i].dtype())) continue;
    const Tensor& gradient = results.at(fmt::format("d{}", i));
    const double scale = std::max(largest(gradient), 1e-3);
    for (std::int64_t e = 0; e < gradient.elements(); ++e) {
      const auto at = std::size_t(e);
      const double difference = objective(backend, moved(op_case, i, at, step)) -
                                objective(backend, moved(op_case, i, at, -step));
      const double error = std::abs(difference / (2 * step) - gradient.at(e)) / scale;
      worst = std::isnan(error) ? INFINITY : std::max(worst, error);
    }
  }
  return worst;
}

}  // namespace keel::compare
