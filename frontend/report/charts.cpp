#include "frontend/report/charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "frontend/io/plot_scale.h"
#include "frontend/report/curves.h"
#include "frontend/report/styles.h"
#include "src/core/error.h"

namespace keel::report {
namespace {

struct Quantity {
  std::string split, name;
  bool operator==(const Quantity&) const = default;
};

template <class Visit>
void for_each_curve(const Section& section, Visit visit) {
  for_each_run(section, [&](const Group&, const Run& run) {
    for (const Curve& curve : run.curves) visit(curve);
  });
}

Axis axis_of(const Section& section, ChartAxis asked) {
  if (asked == ChartAxis::kUpdates) return Axis::kStep;
  const Run* without = nullptr;
  for_each_run(section, [&](const Group&, const Run& run) {
    if (run.epochs.empty()) without = &run;
  });
  check(without == nullptr || asked == ChartAxis::kAuto, ErrorKind::kUsage,
        "--axis: expected updates, for {} has not completed an epoch, got epochs",
        without ? without->name : "");
  return without == nullptr ? Axis::kEpoch : Axis::kStep;
}

// Splits in the order in which they are looked at, the loss before the metrics.
int rank_of(const Quantity& q) {
  const int split = q.split == "train" ? 0 : q.split == "valid" ? 2 : q.split == "test" ? 4 : 6;
  return split + (q.name == "loss" ? 0 : 1);
}

// Whether a run has completed two epochs. Where none has, the losses of single updates are drawn
// instead, for one point is no curve.
bool has_epoch_curves(const Section& section) {
  bool found = false;
  for_each_curve(section, [&](const Curve& c) {
    found = found || (c.split == "train" && c.quantity == "loss" && c.value.size() > 1);
  });
  return found;
}

bool is_wanted(const Quantity& q, bool has_epochs) {
  if (q.split == "train" && q.name == "loss") return has_epochs;
  if (q.split == "step" && q.name == "loss") return !has_epochs;
  return !(q.split == "step" && q.name == "items_per_second");
}

std::vector<Quantity> quantities_of(const Section& section) {
  const bool has_epochs = has_epoch_curves(section);
  std::vector<Quantity> quantities;
  for_each_curve(section, [&](const Curve& c) {
    const Quantity q{c.split, c.quantity};
    if (is_wanted(q, has_epochs) && std::ranges::find(quantities, q) == quantities.end()) {
      quantities.push_back(q);
    }
  });
  std::ranges::stable_sort(quantities, {}, rank_of);
  return quantities;
}

std::string title_of(const Quantity& q) {
  if (q.split == "train") return "training " + q.name;
  if (q.split == "valid") return "validation " + q.name;
  if (q.split == "step") return q.name == "loss" ? "training loss" : q.name;
  return q.split + " " + q.name;
}

io::PlotSeries series_of(const Group& group, const Quantity& q, Axis axis, bool log_x) {
  std::vector<Line> lines;
  for (const Run* run : group.runs) {
    const Curve* curve = find_curve(*run, q.split, q.name);
    if (!curve) continue;
    lines.push_back(log_x ? log_line_of(*run, *curve, axis) : line_of(*run, *curve, axis));
  }
  Band band = band_of(lines);
  io::PlotSeries series{group.label, std::move(band.x), std::move(band.median)};
  if (lines.size() > 1) {
    series.low = std::move(band.low);
    series.high = std::move(band.high);
  }
  return series;
}

io::Range range_of(const std::vector<io::PlotSeries>& all) {
  io::Range range;
  for (const io::PlotSeries& series : all) {
    for (const std::vector<double>* values : {&series.y, &series.low, &series.high}) {
      for (const double v : *values) range.include(v);
    }
  }
  return range;
}

std::string caption_of(const Section& section, const std::string& title) {
  const bool several =
      std::ranges::any_of(section.groups, [](const Group& g) { return g.runs.size() > 1; });
  std::string caption = fmt::format("{} of {}", title, section.model);
  if (several) caption += "; lines: medians over seeds, bands: least to largest";
  return caption;
}

std::optional<Chart> chart_of(const Section& section, const Quantity& q,
                              const std::vector<MetricFacts>& metrics,
                              const ChartOptions& options) {
  const Axis axis = axis_of(section, options.axis);
  Chart chart{q.split + "-" + q.name, caption_of(section, title_of(q)), {}};
  io::Plot& plot = chart.plot;
  const std::vector<std::size_t> styles = styles_of(section);
  for (std::size_t i = 0; i < section.groups.size(); ++i) {
    io::PlotSeries series = series_of(section.groups[i], q, axis, options.log_x);
    series.style = styles[i];
    if (!series.x.empty()) plot.series.push_back(std::move(series));
  }
  if (plot.series.size() == 1 && section.groups.size() > 1) {
    chart.caption += "; of " + plot.series[0].name + " alone";
  }
  const io::Range range = range_of(plot.series);
  const bool never_changes = q.split == "step" && range.low == range.high;
  if (plot.series.empty() || never_changes) return std::nullopt;
  const auto fact = std::ranges::find(metrics, q.name, &MetricFacts::name);
  const bool is_metric = fact != metrics.end() && q.split != "step";
  const bool less_is_better = !is_metric || !fact->higher_is_better;
  plot.title = title_of(q);
  plot.whole_x = true;
  plot.log_x = options.log_x;
  plot.x_label = axis == Axis::kEpoch ? "epoch" : "step";
  plot.y_label = q.name + (is_metric && !fact->unit.empty() ? ", " + fact->unit : "");
  plot.log_y = less_is_better && range.low > 0 && range.high > 10 * range.low;
  return chart;
}

}  // namespace

std::vector<Chart> charts_of(const Section& section, const std::vector<MetricFacts>& metrics,
                             const ChartOptions& options) {
  std::vector<Chart> charts;
  for (const Quantity& q : quantities_of(section)) {
    if (auto chart = chart_of(section, q, metrics, options)) charts.push_back(std::move(*chart));
  }
  return charts;
}

}  // namespace keel::report
