#include "frontend/compare/verdicts/step_twins.h"

#include <algorithm>
#include <cmath>

#include "frontend/compare/bounds/measure.h"

namespace keel::compare {
namespace {

constexpr double kLevel = 0.01;  // of the test, over all variables together

using Values = std::map<std::string, Tensor>;

// The floating variables in float64.
Values widened(const TrainingState& state) {
  Values values;
  for (const auto& [name, value] : state.variables) {
    if (is_floating(value.dtype())) values.emplace(name, value.to(DType::kF64));
  }
  return values;
}

double distance_of(const Tensor& a, const Tensor& b) {
  const auto x = a.as<double>(), y = b.as<double>();
  double squares = 0;
  for (std::size_t i = 0; i < x.size(); ++i) squares += (x[i] - y[i]) * (x[i] - y[i]);
  return std::sqrt(squares);
}

// One unit in the last place of every element.
double unit_of(const Tensor& value) {
  double squares = 0;
  for (const double v : value.as<double>()) squares += ulp_of(v) * ulp_of(v);
  return std::sqrt(squares);
}

}  // namespace

std::int64_t heads_that_tell(std::int64_t n, double level) {
  double tail = 0, chance = std::exp2(double(-n));  // of exactly k heads, from k = n down
  for (std::int64_t k = n; k >= 0; --k) {
    tail += chance;
    if (tail > level) return k + 1;
    chance *= double(k) / double(n - k + 1);
  }
  return 0;
}

StepTwins::StepTwins(Backend& reference, Backend& backend, ModelSubject& subject)
    : backend_(backend.name()), reference_(reference, subject), twin_(backend, subject) {}

void StepTwins::take(const TrainingState& before, const TrainingState& after,
                     const SubjectStep& step) {
  reference_.set(before, step);
  reference_.run(step);
  const Values expected = widened(reference_.state()), got = widened(after);
  std::map<std::string, double> twins;  // the largest distances
  for (int i = 0; i < kTwins; ++i) {
    twin_.set(before, step);
    twin_.perturb(std::uint32_t(steps_ * kTwins + i));
    twin_.run(step);
    for (const auto& [name, value] : widened(twin_.state())) {
      twins[name] = std::max(twins[name], distance_of(value, got.at(name)));
    }
  }
  for (const auto& [name, value] : got) {
    const double ratio = distance_of(value, expected.at(name)) / (twins[name] + unit_of(value));
    Count& count = counts_[name];
    if (!(ratio <= kTwins)) ++count.further;
    count.largest = std::max(count.largest, ratio);
  }
  ++steps_;
}

StepVerdict StepTwins::verdict() const {
  StepVerdict verdict{.backend = backend_, .steps = steps_, .variable = {}};
  verdict.needed = heads_that_tell(steps_, kLevel / std::max(1.0, double(counts_.size())));
  double largest = -1;
  for (const auto& [name, count] : counts_) {
    const bool is_worse =
        std::pair(count.further, count.largest) > std::pair(verdict.further, largest);
    if (!is_worse) continue;
    verdict.variable = name;
    verdict.further = count.further;
    largest = count.largest;
  }
  return verdict;
}

std::string StepVerdict::text() const {
  const std::string rounding = fmt::format(
      "{} times what one unit in the last place of the weights makes of a step (the largest of {} "
      "twins)",
      kTwins, kTwins);
  if (!is_decided()) {
    return fmt::format("{}: {} step{} too few for a verdict on rounding; give more --steps",
                       backend, steps, steps == 1 ? " is" : "s are");
  }
  if (is_fault()) {
    return fmt::format(
        "{}: rounding does NOT explain the difference: from the same weights, {} is further from "
        "the reference than {} in {} of {} steps; by rounding alone {} have a probability below "
        "{:g} %",
        backend, variable, rounding, further, steps, needed, 100 * kLevel);
  }
  return fmt::format(
      "{}: rounding explains the difference: from the same weights, no variable is further from "
      "the reference than {} in more than {} of {} steps; {} would be a fault",
      backend, rounding, further, steps, needed);
}

}  // namespace keel::compare
