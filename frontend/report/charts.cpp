#include "frontend/report/charts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <optional>
#include <set>

#include "frontend/io/plot_scale.h"
#include "frontend/io/plot_text.h"
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
  const std::string words = io::words_of_quantity(q.name);
  if (q.split == "train") return "training " + words;
  if (q.split == "valid") return "validation " + words;
  if (q.split == "step") return q.name == "loss" ? "training loss" : words;
  return q.split + " " + words;
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

std::string joined_words(const std::set<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

// "3 runs each (seeds 1, 2, 3)", of the groups that are drawn.
std::string seeds_text(const std::vector<const Group*>& groups) {
  std::set<std::size_t> counts;
  // Numbers as text: shorter ones first.
  const auto is_less = [](const std::string& a, const std::string& b) {
    return std::pair(a.size(), a) < std::pair(b.size(), b);
  };
  std::set<std::string, decltype(is_less)> seeds(is_less);
  for (const Group* group : groups) {
    counts.insert(group->runs.size());
    for (const Run* run : group->runs) {
      const std::string seed = seed_of(*run);
      if (!seed.empty()) seeds.insert(seed);
    }
  }
  const std::string n = counts.size() == 1
                            ? fmt::format("{}", *counts.begin())
                            : fmt::format("{} to {}", *counts.begin(), *counts.rbegin());
  std::string text =
      fmt::format("{} run{}{}", n, n == "1" ? "" : "s", groups.size() > 1 ? " of each" : "");
  if (!seeds.empty()) {
    text += fmt::format(" (seed{} {})", seeds.size() == 1 ? "" : "s", fmt::join(seeds, ", "));
  }
  return text;
}

std::string caption_of(const Section& section, const std::vector<const Group*>& groups,
                       const std::string& title) {
  std::set<std::string> data;
  bool several = false;
  for (const Group* group : groups) {
    several = several || group->runs.size() > 1;
    for (const Run* run : group->runs) data.insert(data_name(*run));
  }
  std::string caption = fmt::format("{} of {} on {}", title, section.model, joined_words(data));
  caption[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(caption[0])));
  caption += "; " + seeds_text(groups);
  if (several) caption += "; lines: medians over seeds, bands: least to largest";
  if (groups.size() == 1 && section.groups.size() > 1) {
    caption += fmt::format("; only {} has it", groups[0]->label);
  }
  return caption;
}

std::optional<Chart> chart_of(const Section& section, const Quantity& q,
                              const std::vector<MetricFacts>& metrics,
                              const ChartOptions& options) {
  const Axis axis = axis_of(section, options.axis);
  Chart chart{q.split + "-" + q.name, "", {}};
  io::Plot& plot = chart.plot;
  const std::vector<std::size_t> styles = styles_of(section);
  std::vector<const Group*> drawn;
  for (std::size_t i = 0; i < section.groups.size(); ++i) {
    io::PlotSeries series = series_of(section.groups[i], q, axis, options.log_x);
    series.style = styles[i];
    if (series.x.empty()) continue;
    plot.series.push_back(std::move(series));
    drawn.push_back(&section.groups[i]);
  }
  const io::Range range = range_of(plot.series);
  const bool never_changes = q.split == "step" && range.low == range.high;
  if (plot.series.empty() || never_changes) return std::nullopt;
  const auto fact = std::ranges::find(metrics, q.name, &MetricFacts::name);
  const bool is_metric = fact != metrics.end() && q.split != "step";
  const bool less_is_better = !is_metric || !fact->higher_is_better;
  chart.caption = plot.about = caption_of(section, drawn, title_of(q));
  plot.whole_x = true;
  plot.log_x = options.log_x;
  plot.x_label = axis == Axis::kEpoch ? "epoch" : "update";
  plot.y_label = title_of(q) + (is_metric && !fact->unit.empty() ? ", " + fact->unit : "");
  plot.log_y = less_is_better && range.low > 0 && range.high > 10 * range.low;
  plot.from_zero = is_metric && fact->unit == "%" && less_is_better;
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
