// Every key of a report as JSON, each beside a value that no other key has.
#include <cmath>
#include <nlohmann/json.hpp>

#include "frontend/report/report.h"
#include "tests/frontend/report/helpers.h"

namespace keel::report {
namespace {

using Json = nlohmann::ordered_json;

std::vector<MetricFacts> facts_of_errors(const Run&) { return {{"error", "%", false}}; }

// Two seeds without a norm, one with, and one that diverged.
std::vector<Run> four_runs() {
  std::vector<Run> runs{made_run("a", {{"model.norm", "none"}, {"train.seed", "7"}}, {40, 20}),
                        made_run("b", {{"model.norm", "none"}, {"train.seed", "8"}}, {50, 10}),
                        made_run("c", {{"model.norm", "n1"}, {"train.seed", "9"}}, {14, 13, 5}),
                        made_run("d", {{"model.norm", "n2"}, {"train.seed", "6"}}, {90})};
  runs[0].seconds = 50;
  runs[1].seconds = 80;
  runs[1].items_per_second = 700;
  runs[1].epochs = {{10, 2}, {20, 4}};
  runs[1].test["last"] = {{"loss", 0.75}, {"error", 11}};
  runs[1].test["best"] = {{"loss", 0.25}, {"error", 12}};
  runs[0].test["best"] = {{"loss", 0.125}, {"error", 16}};
  runs[3].outcome = Outcome::kDiverged;
  runs[3].message = "step 12: loss is nan";
  runs[3].test.clear();
  return runs;
}

void check_spread(const Json& json, double mean, double deviation, int n) {
  CAPTURE(json.dump());
  CHECK(json.at("mean").get<double>() == doctest::Approx(mean));
  CHECK(json.at("deviation").get<double>() == doctest::Approx(deviation));
  CHECK(json.at("n") == n);
}

TEST_CASE("report json: every key of a section and its groups") {
  const std::vector<Run> runs = four_runs();
  const Json json = report_json(make_report(runs, facts_of_errors));
  REQUIRE(json.size() == 1);
  const Json& section = json.at(0);
  CHECK(section.at("model") == "mlp");
  CHECK(section.at("differing") == Json{"model.norm"});
  REQUIRE(section.at("groups").size() == 3);
  const Json& none = section.at("groups").at(0);
  CHECK(none.at("group") == "none");
  CHECK(none.at("settings") == Json{{"model.norm", "none"}});
  const Json& results = none.at("results");
  const double root = std::sqrt(2);  // |a - b| / root is the deviation of two
  check_spread(results.at("test.error.last"), 15.5, 9 / root, 2);
  check_spread(results.at("test.error.best"), 14, 4 / root, 2);
  check_spread(results.at("test.loss.last"), 0.625, 0.25 / root, 2);
  check_spread(results.at("valid.error.best"), 15, 10 / root, 2);
  check_spread(results.at("train.loss.last"), 0.15, 0.1 / root, 2);
  check_spread(none.at("epochs"), 3, 2 / root, 2);
  check_spread(none.at("seconds"), 65, 30 / root, 2);
  check_spread(none.at("items_per_second"), 850, 300 / root, 2);
  CHECK(section.at("groups").at(1).at("results").at("test.error.last").at("mean") == 5);
}

TEST_CASE("report json: every key of a run") {
  const std::vector<Run> runs = four_runs();
  const Json json = report_json(make_report(runs, facts_of_errors));
  const Json& finished = json.at(0).at("groups").at(0).at("runs").at(1);
  CHECK(finished.at("run") == "b");
  CHECK(finished.at("seed") == "8");
  CHECK(finished.at("outcome") == "finished");
  CHECK(finished.at("steps") == 20);
  CHECK(finished.at("epochs") == 4);
  CHECK(finished.at("seconds") == 80);
  CHECK_FALSE(finished.contains("message"));
  const Json& diverged = json.at(0).at("groups").at(2).at("runs").at(0);
  CHECK(diverged.at("outcome") == "diverged");
  CHECK(diverged.at("message") == "step 12: loss is nan");
  CHECK(diverged.at("steps") == 10);
}

TEST_CASE("report json: every key of what a norm saves") {
  const std::vector<Run> runs = four_runs();
  const Json json = report_json(make_report(runs, facts_of_errors));
  const Json& rows = json.at(0).at("catch_ups");
  REQUIRE(rows.size() == 2);
  const Json& there = rows.at(0);
  CHECK(there.at("metric") == "error");
  CHECK(there.at("group") == "n1");
  CHECK(there.at("baseline") == "none");
  CHECK(there.at("goal") == 15);
  CHECK(there.at("goal_step") == 20);
  CHECK(there.at("step") == 10);
  CHECK(there.at("share") == 0.5);
  CHECK(there.at("best") == 5);
  CHECK(there.at("best_step") == 30);
  CHECK(rows.at(1).at("group") == "n2");
  CHECK(rows.at(1).at("step").is_null());
  CHECK(rows.at(1).at("share").is_null());
}

}  // namespace
}  // namespace keel::report
