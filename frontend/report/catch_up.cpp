#include "frontend/report/catch_up.h"

#include <algorithm>
#include <limits>

#include "frontend/report/curves.h"

namespace keel::report {
namespace {

const std::string kNormKey = "model.norm", kNoNorm = "none";

// The settings that must be the same in both groups of a pair.
Settings other_settings(const Group& group) {
  Settings settings = group.runs[0]->settings;
  for (const std::string& key : {std::string("train.seed"), std::string("data.seed"), kNormKey}) {
    settings.erase(key);
  }
  return settings;
}

std::string norm_of(const Group& group) {
  const Settings& settings = group.runs[0]->settings;
  const auto norm = settings.find(kNormKey);
  return norm == settings.end() ? "" : norm->second;
}

const Group* baseline_of(const Section& section, const Group& group) {
  if (norm_of(group) == kNoNorm || norm_of(group).empty()) return nullptr;
  const auto found = std::ranges::find_if(section.groups, [&](const Group& other) {
    return norm_of(other) == kNoNorm && other_settings(other) == other_settings(group);
  });
  return found == section.groups.end() ? nullptr : &*found;
}

// The median over the seeds at every update after which any of them was evaluated.
Line median_of_runs(const Group& group, const std::string& metric) {
  constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
  std::vector<Line> lines;
  for (const Run* run : group.runs) {
    const Curve* curve = find_curve(*run, "valid", metric);
    if (curve) lines.push_back(line_of(*run, *curve, Axis::kStep, kAll));
  }
  Band band = band_of(lines);
  return {std::move(band.x), std::move(band.median)};
}

// The place of the first value that is as good as any.
std::size_t best_place(const Line& line, bool higher_is_better) {
  const auto best =
      higher_is_better ? std::ranges::max_element(line.y) : std::ranges::min_element(line.y);
  return std::size_t(best - line.y.begin());
}

std::optional<double> first_step(const Line& line, double goal, bool higher_is_better) {
  const auto found = std::ranges::find_if(
      line.y, [&](double value) { return higher_is_better ? value >= goal : value <= goal; });
  if (found == line.y.end()) return std::nullopt;
  return line.x[std::size_t(found - line.y.begin())];
}

std::optional<CatchUp> catch_up(const Group& group, const Group& baseline,
                                const MetricFacts& metric) {
  const Line own = median_of_runs(group, metric.name),
             other = median_of_runs(baseline, metric.name);
  if (own.x.empty() || other.x.empty()) return std::nullopt;
  const std::size_t goal = best_place(other, metric.higher_is_better),
                    best = best_place(own, metric.higher_is_better);
  return CatchUp{.metric = metric.name,
                 .unit = metric.unit,
                 .group = group.label,
                 .baseline = baseline.label,
                 .goal = other.y[goal],
                 .goal_step = other.x[goal],
                 .step = first_step(own, other.y[goal], metric.higher_is_better),
                 .best = own.y[best],
                 .best_step = own.x[best]};
}

}  // namespace

std::optional<double> CatchUp::share() const {
  if (!step || goal_step <= 0) return std::nullopt;
  return *step / goal_step;
}

std::vector<CatchUp> catch_ups_of(const Section& section, const std::vector<MetricFacts>& metrics) {
  std::vector<CatchUp> rows;
  for (const MetricFacts& metric : metrics) {
    if (!metric.has_direction) continue;
    for (const Group& group : section.groups) {
      const Group* baseline = baseline_of(section, group);
      if (baseline == nullptr) continue;
      if (const auto row = catch_up(group, *baseline, metric)) rows.push_back(*row);
    }
  }
  return rows;
}

}  // namespace keel::report
