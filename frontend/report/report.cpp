#include "frontend/report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "frontend/train/evaluator.h"
#include "frontend/train/progress.h"

namespace keel::report {
namespace {

// "2", or "1 of 2": the finished runs of a group.
std::string count_text(const Group& group) {
  const auto finished = std::ranges::count(group.runs, Outcome::kFinished, &Run::outcome);
  return finished == std::ssize(group.runs) ? fmt::format("{}", finished)
                                            : fmt::format("{} of {}", finished, group.runs.size());
}

std::string short_text(std::optional<double> value, int digits) {
  return value ? fmt::format("{:.{}f}", *value, digits) : "-";
}

std::string time_text(std::optional<double> seconds) {
  return seconds ? train::duration_text(*seconds) : "-";
}

std::optional<double> mean_of(const Spread& spread) {
  return spread.n > 0 ? std::optional(spread.mean) : std::nullopt;
}

// The digits that all cells of a figure's column are shown with.
int digits_of(const SectionReport& report, const Figure& figure) {
  double size = 0;
  for_each_run(report.section, [&](const Group&, const Run& run) {
    size = std::max(size, std::abs(value_in(run, figure).value_or(0)));
  });
  return digits_for(size, figure.unit);
}

// "2.30 (s.e. 0.21)": the number of one run, which is not exact for being the only one.
std::string text_of_one(const Run& run, const Figure& figure, int digits) {
  const std::string value = short_text(value_in(run, figure), digits);
  const auto n = counted_in(run, figure);
  if (!n) return value;
  const double share = *value_in(run, figure) / 100;
  const train::ShareError error = train::error_of_share(share, *n);
  if (share == 0) return fmt::format("{} (below {:.{}f})", value, error.limit, digits);
  if (share == 1) return fmt::format("{} (above {:.{}f})", value, 100 - error.limit, digits);
  return fmt::format("{} (s.e. {:.{}f})", value, error.standard, digits);
}

// The mean over the finished runs with its deviation, or what the only one has.
std::string text_of_group(const Group& group, const Figure& figure, int digits,
                          const std::string& sign) {
  const auto is_finished = [](const Run* run) { return run->outcome == Outcome::kFinished; };
  if (std::ranges::count_if(group.runs, is_finished) != 1) {
    return text(spread_in(group, figure), digits, sign);
  }
  return text_of_one(**std::ranges::find_if(group.runs, is_finished), figure, digits);
}

}  // namespace

std::vector<SectionReport> make_report(std::span<const Run> runs, const FactsOf& facts_of,
                                       const ChartOptions& options) {
  std::vector<SectionReport> reports;
  for (Section& section : sections_of(runs)) {
    const std::vector<MetricFacts> metrics = facts_of(*section.groups[0].runs[0]);
    std::vector<Figure> figures = figures_of(section, metrics);
    std::vector<Chart> charts = charts_of(section, metrics, options);
    std::vector<CatchUp> catch_ups = catch_ups_of(section, metrics);
    reports.push_back(
        {std::move(section), std::move(figures), std::move(charts), std::move(catch_ups)});
  }
  return reports;
}

Rows settings_rows(const SectionReport& report) {
  Rows rows{{"group"}};
  rows[0].insert(rows[0].end(), report.section.differing.begin(), report.section.differing.end());
  for (const Group& group : report.section.groups) {
    rows.push_back({group.label});
    rows.back().insert(rows.back().end(), group.settings.begin(), group.settings.end());
  }
  return rows;
}

Rows result_rows(const SectionReport& report, const std::string& sign) {
  Rows rows{{"group", "runs"}};
  for (const Figure& figure : report.figures) rows[0].push_back(figure.title());
  rows[0].insert(rows[0].end(), {"epochs", "time", "items/s"});
  for (const Group& group : report.section.groups) {
    std::vector<std::string>& row = rows.emplace_back();
    row = {group.label, count_text(group)};
    for (const Figure& figure : report.figures) {
      row.push_back(text_of_group(group, figure, digits_of(report, figure), sign));
    }
    const Costs costs = costs_of(group);
    row.push_back(short_text(mean_of(costs.epochs), 1));
    row.push_back(time_text(mean_of(costs.seconds)));
    row.push_back(text(costs.items_per_second, 0, sign));
  }
  return rows;
}

Rows catch_up_rows(const SectionReport& report) {
  Rows rows{{"metric", "group", "baseline", "its best", "after updates", "reached after", "share",
             "own best", "after"}};
  for (const CatchUp& c : report.catch_ups) {
    const int digits = digits_for(std::max(std::abs(c.goal), std::abs(c.best)), c.unit);
    rows.push_back({fmt::format("valid {}{}", c.metric, c.unit.empty() ? "" : " " + c.unit),
                    c.group, c.baseline, short_text(c.goal, digits), short_text(c.goal_step, 0),
                    short_text(c.step, 0), short_text(c.share(), 2), short_text(c.best, digits),
                    short_text(c.best_step, 0)});
  }
  return rows;
}

Rows run_rows(const SectionReport& report) {
  Rows rows{{"run", "group", "seed", "outcome", "epochs", "time"}};
  for (const Figure& figure : report.figures) rows[0].push_back(figure.title());
  for_each_run(report.section, [&](const Group& group, const Run& run) {
    const std::string why = run.message.empty() ? "" : ": " + run.message;
    rows.push_back({run.name, group.label, seed_of(run), name_of(run.outcome) + why,
                    short_text(epochs_of(run), 1), time_text(run.seconds)});
    for (const Figure& figure : report.figures) {
      rows.back().push_back(text_of_one(run, figure, digits_of(report, figure)));
    }
  });
  return rows;
}

}  // namespace keel::report
