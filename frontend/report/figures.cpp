#include "frontend/report/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace keel::report {
namespace {

const std::vector<std::string> kWeights{"last", "best", "averaged"};

// The metrics in the order of the facts, then others that test results have, but for the loss.
std::vector<MetricFacts> metrics_in(const Section& section, std::vector<MetricFacts> metrics) {
  for_each_run(section, [&](const Group&, const Run& run) {
    for (const auto& [weights, values] : run.test) {
      for (const auto& [name, value] : values) {
        const bool known = std::ranges::find(metrics, name, &MetricFacts::name) != metrics.end();
        if (!known && name != "loss") metrics.push_back({name, "", false});
      }
    }
  });
  return metrics;
}

std::optional<double> best_of(const Curve& curve, bool higher_is_better) {
  std::optional<double> best;
  for (const double value : curve.value) {
    if (!std::isfinite(value)) continue;
    const bool is_better = !best || (higher_is_better ? value > *best : value < *best);
    if (is_better) best = value;
  }
  return best;
}

std::optional<double> last_of(const Curve& curve) {
  const auto found = std::find_if(curve.value.rbegin(), curve.value.rend(),
                                  [](double value) { return std::isfinite(value); });
  return found == curve.value.rend() ? std::nullopt : std::optional(*found);
}

std::optional<double> value_among(const std::map<std::string, Values>& by_weights,
                                  const Figure& figure) {
  const auto values = by_weights.find(figure.weights);
  if (values == by_weights.end()) return std::nullopt;
  const auto found = std::ranges::find(values->second, figure.metric, &Values::value_type::first);
  return found == values->second.end() ? std::nullopt : std::optional(found->second);
}

// The spread over the finished runs that have such a number.
template <class ValueOf>
Spread spread_over(const Group& group, ValueOf value_of) {
  std::vector<double> values;
  for (const Run* run : group.runs) {
    const std::optional<double> value = value_of(*run);
    if (run->outcome == Outcome::kFinished && value) values.push_back(*value);
  }
  return spread_of(values);
}

}  // namespace

std::string Figure::key() const { return fmt::format("{}.{}.{}", split, metric, weights); }

std::string Figure::title() const {
  return fmt::format("{} {}{}, {}", split, metric, unit.empty() ? "" : " " + unit, weights);
}

std::vector<Figure> figures_of(const Section& section, const std::vector<MetricFacts>& metrics) {
  std::vector<Figure> candidates;
  const auto add_tests = [&](const MetricFacts& m) {
    for (const std::string& weights : kWeights) {
      candidates.push_back({"test", m.name, weights, m.unit, m.higher_is_better});
    }
  };
  for (const MetricFacts& m : metrics_in(section, metrics)) {
    add_tests(m);
    const bool decides = !metrics.empty() && m.name == metrics.front().name;
    if (decides) candidates.push_back({"valid", m.name, "best", m.unit, m.higher_is_better});
  }
  add_tests({"loss", "", false});
  candidates.push_back({"train", "loss", "last", "", false});
  std::erase_if(candidates, [&](const Figure& figure) {
    bool found = false;
    for_each_run(section,
                 [&](const Group&, const Run& run) { found |= value_in(run, figure).has_value(); });
    return !found;
  });
  return candidates;
}

std::optional<double> value_in(const Run& run, const Figure& figure) {
  if (figure.split == "test") return value_among(run.test, figure);
  const Curve* curve = find_curve(run, figure.split, figure.metric);
  if (!curve) return std::nullopt;
  return figure.weights == "best" ? best_of(*curve, figure.higher_is_better) : last_of(*curve);
}

std::optional<double> counted_in(const Run& run, const Figure& figure) {
  return figure.split == "test" ? value_among(run.counted, figure) : std::nullopt;
}

Spread spread_in(const Group& group, const Figure& figure) {
  return spread_over(group, [&](const Run& run) { return value_in(run, figure); });
}

Costs costs_of(const Group& group) {
  return {spread_over(group, [](const Run& run) { return run.seconds; }),
          spread_over(group, [](const Run& run) { return run.items_per_second; }),
          spread_over(group, epochs_of)};
}

std::optional<double> epochs_of(const Run& run) { return epoch_at(run, run.step); }

}  // namespace keel::report
