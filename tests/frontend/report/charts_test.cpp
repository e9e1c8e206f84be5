// Which charts there are, along which axes, and that every group keeps its style.
#include "frontend/report/charts.h"

#include <algorithm>

#include "frontend/report/styles.h"
#include "tests/frontend/report/helpers.h"
#include "tests/support/checks.h"

namespace keel::report {
namespace {

const std::vector<MetricFacts> kError{{"error", "%", false}}, kAccuracy{{"error", "%", true}};

std::vector<Run> two_groups() {
  return {made_run("a", {{"model.norm", "none"}, {"train.seed", "1"}}, {40, 20}),
          made_run("b", {{"model.norm", "none"}, {"train.seed", "2"}}, {50, 10}),
          made_run("c", {{"model.norm", "layernorm"}, {"train.seed", "1"}}, {30, 15})};
}

std::vector<std::string> names(const std::vector<Chart>& charts) {
  std::vector<std::string> names;
  for (const Chart& chart : charts) names.push_back(chart.name);
  return names;
}

const Chart& called(const std::vector<Chart>& charts, const std::string& name) {
  const auto found = std::ranges::find(charts, name, &Chart::name);
  REQUIRE(found != charts.end());
  return *found;
}

TEST_CASE("report charts: one a quantity, a line for each group, a band for several seeds") {
  const std::vector<Run> runs = two_groups();
  const auto charts = charts_of(sections_of(runs)[0], kError);
  CHECK(names(charts) == std::vector<std::string>{"train-loss", "valid-error"});
  const io::Plot& plot = called(charts, "valid-error").plot;
  CHECK(plot.title.empty());  // the caption says it
  CHECK(plot.x_label == "epoch");
  CHECK(plot.y_label == "validation error, %");
  CHECK(plot.from_zero);
  REQUIRE(plot.series.size() == 2);
  CHECK(plot.series[0].name == "none");
  CHECK(plot.series[0].x == std::vector<double>{1, 2});
  CHECK(plot.series[0].y == std::vector<double>{45, 15});
  CHECK(plot.series[0].low == std::vector<double>{40, 10});
  CHECK(plot.series[0].high == std::vector<double>{50, 20});
  CHECK(plot.series[1].y == std::vector<double>{30, 15});
  CHECK(plot.series[1].low.empty());
  CHECK(
      charts[1].caption ==
      "Validation error of mlp on built-in data; 1 to 2 runs of each (seeds 1, 2); lines: medians "
      "over seeds, bands: least to largest");
  CHECK(plot.about == charts[1].caption);
}

TEST_CASE("report charts: captions name the data and the seeds") {
  std::vector<Run> runs = two_groups();
  runs[0].data = "built-in digits, train, seed 1";
  runs[1].settings["data.source"] = runs[2].settings["data.source"] = "/data/mnist/";
  runs[2].settings["train.seed"] = "10";
  const std::string caption = charts_of(sections_of(runs)[0], kAccuracy)[1].caption;
  CHECK(caption.starts_with("Validation error of mlp on built-in digits, mnist; "));
  CHECK(caption.find("(seeds 1, 2, 10)") != std::string::npos);
  runs = {made_run("a", {{"train.seed", "3"}}, {40, 20})};
  CHECK(charts_of(sections_of(runs)[0], kError)[1].caption ==
        "Validation error of mlp on built-in data; 1 run (seed 3)");
}

TEST_CASE("report charts: a logarithmic axis where less is better over more than a decade") {
  const auto is_log = [](std::vector<double> errors, const std::vector<MetricFacts>& facts) {
    const std::vector<Run> runs{made_run("a", {}, errors)};
    return called(charts_of(sections_of(runs)[0], facts), "valid-error").plot.log_y;
  };
  CHECK(is_log({10.1, 1}, kError));
  CHECK_FALSE(is_log({10, 1}, kError));
  CHECK_FALSE(is_log({100, 0}, kError));
  CHECK_FALSE(is_log({100, -1}, kError));
  CHECK_FALSE(is_log({100, 1}, kAccuracy));
  CHECK(is_log({100, 1}, {}));
}

TEST_CASE("report charts: along steps while a run has no epoch after it") {
  std::vector<Run> runs = two_groups();
  runs[2].epochs.clear();
  const auto charts = charts_of(sections_of(runs)[0], kError);
  CHECK(called(charts, "valid-error").plot.x_label == "update");
  CHECK(called(charts, "valid-error").plot.series[0].x == std::vector<double>{10, 20});
}

TEST_CASE("report charts: the axis may be asked for, and be logarithmic") {
  std::vector<Run> runs = two_groups();
  const auto chart = [&](const ChartOptions& options) {
    return called(charts_of(sections_of(runs)[0], kError, options), "valid-error").plot;
  };
  CHECK(chart({.axis = ChartAxis::kUpdates}).x_label == "update");
  CHECK(chart({.axis = ChartAxis::kUpdates}).series[0].x == std::vector<double>{10, 20});
  CHECK_FALSE(chart({.axis = ChartAxis::kUpdates}).log_x);
  CHECK(chart({.axis = ChartAxis::kEpochs, .log_x = true}).x_label == "epoch");
  CHECK(chart({.log_x = true}).log_x);
  runs[1].epochs.clear();
  test::check_refused([&] { chart({.axis = ChartAxis::kEpochs}); },
                      "--axis: expected updates, for b has not completed an epoch, got epochs");
}

TEST_CASE("report charts: a logarithmic axis has nothing at 0, and keeps the first steps apart") {
  std::vector<Run> runs{made_run("a", {}, {3})};
  Curve losses{"step", "loss", {}, {}};
  for (int step = 0; step <= 100000; ++step) {
    losses.step.push_back(step);
    losses.value.push_back(step);
  }
  runs[0].curves.push_back(losses);
  const ChartOptions options{.axis = ChartAxis::kUpdates, .log_x = true};
  const auto charts = charts_of(sections_of(runs)[0], kError, options);
  const io::PlotSeries& series = called(charts, "step-loss").plot.series[0];
  CHECK(series.x == series.y);
  CHECK(series.x.size() < 401);
  CHECK(std::vector<double>(series.x.begin(), series.x.begin() + 4) ==
        std::vector<double>{1, 2, 3, 4});
  CHECK(series.x.back() > 95000);
}

TEST_CASE("report charts: losses of steps only where there are none of epochs to compare") {
  std::vector<Run> runs{made_run("a", {}, {3})};
  runs[0].curves.push_back({"step", "loss", {1, 2}, {5, 4}});
  CHECK(names(charts_of(sections_of(runs)[0], kError)) ==
        std::vector<std::string>{"valid-error", "step-loss"});
  runs = {made_run("a", {}, {3, 2})};
  runs[0].curves.push_back({"step", "loss", {1, 2}, {5, 4}});
  CHECK(names(charts_of(sections_of(runs)[0], kError)) ==
        std::vector<std::string>{"train-loss", "valid-error"});
}

TEST_CASE("report charts: what never changes from step to step is not drawn, nor is the speed") {
  std::vector<Run> runs{made_run("a", {}, {3, 2})};
  runs[0].curves.push_back({"step", "lr", {1, 2}, {0.1, 0.1}});
  runs[0].curves.push_back({"step", "grad_norm", {1, 2}, {0.1, 0.2}});
  runs[0].curves.push_back({"step", "items_per_second", {1, 2}, {1, 2}});
  CHECK(names(charts_of(sections_of(runs)[0], kError)) ==
        std::vector<std::string>{"train-loss", "valid-error", "step-grad_norm"});
}

TEST_CASE("report charts: a group has its style also where another has nothing to show") {
  std::vector<Run> runs = two_groups();
  runs[2].curves.push_back({"test", "error", {10, 20}, {7, 6}});
  const auto charts = charts_of(sections_of(runs)[0], kError);
  const io::Plot& plot = called(charts, "test-error").plot;
  REQUIRE(plot.series.size() == 1);
  CHECK(plot.series[0].name == "layernorm");
  CHECK(called(charts, "test-error").caption.ends_with("; only layernorm has it"));
  CHECK(plot.series[0].style == style_of_norm("layernorm"));
  CHECK(called(charts, "valid-error").plot.series[1].style == style_of_norm("layernorm"));
}

}  // namespace
}  // namespace keel::report
