// The numbers that runs end with, over seeds.
#include "frontend/report/figures.h"

#include <cmath>

#include "tests/frontend/report/helpers.h"

namespace keel::report {
namespace {

const std::vector<MetricFacts> kFacts{{"error", "%", false}};

std::vector<std::string> keys(const std::vector<Figure>& figures) {
  std::vector<std::string> keys;
  for (const Figure& figure : figures) keys.push_back(figure.key());
  return keys;
}

TEST_CASE("report figures: metrics before losses, the first at its best on the validation set") {
  std::vector<Run> runs{made_run("a", {}, {4, 2, 3})};
  runs[0].test["best"] = {{"loss", 0.25}, {"error", 2.5}, {"speed", 9}};
  const auto figures = figures_of(sections_of(runs)[0], kFacts);
  CHECK(keys(figures) == std::vector<std::string>{"test.error.last", "test.error.best",
                                                  "valid.error.best", "test.speed.best",
                                                  "test.loss.last", "test.loss.best",
                                                  "train.loss.last"});
  CHECK(figures[1].title() == "test error %, best");
  CHECK(figures[6].title() == "train loss, last");
  CHECK(value_in(runs[0], figures[0]) == 3);
  CHECK(value_in(runs[0], figures[1]) == 2.5);
  CHECK(value_in(runs[0], figures[2]) == 2);
  CHECK(value_in(runs[0], figures[6]) == 0.03);
  const auto upwards = figures_of(sections_of(runs)[0], {{"error", "%", true}});
  CHECK(value_in(runs[0], upwards[2]) == 4);
}

TEST_CASE("report figures: means are over the finished runs of a group") {
  std::vector<Run> runs{made_run("a", {{"train.seed", "1"}}, {2}),
                        made_run("b", {{"train.seed", "2"}}, {4}),
                        made_run("c", {{"train.seed", "3"}}, {100})};
  runs[2].outcome = Outcome::kUnfinished;
  runs[2].test.clear();
  runs[1].seconds = 120;
  const Section section = sections_of(runs)[0];
  const auto figures = figures_of(section, kFacts);
  const Spread tested = spread_in(section.groups[0], figures[0]),
               valid = spread_in(section.groups[0], figures[1]);
  CHECK(tested.mean == 3);
  CHECK(tested.deviation == std::sqrt(2.0));
  CHECK(tested.n == 2);
  CHECK(valid.n == 2);
  CHECK(value_in(runs[2], figures[1]) == 100);  // so far
  CHECK_FALSE(value_in(runs[2], figures[0]).has_value());
  const Costs costs = costs_of(section.groups[0]);
  CHECK(costs.seconds.mean == 90);
  CHECK(costs.epochs.mean == 1);
  CHECK(costs.items_per_second.n == 2);
}

TEST_CASE("report figures: what no run has is left out") {
  std::vector<Run> runs{made_run("a", {}, {})};
  runs[0].outcome = Outcome::kDiverged;
  CHECK(figures_of(sections_of(runs)[0], kFacts).empty());
}

}  // namespace
}  // namespace keel::report
