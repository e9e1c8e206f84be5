// A report's tables and files.
#include "frontend/report/report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "frontend/report/report_files.h"
#include "tests/frontend/report/helpers.h"
#include "tests/support/checks.h"
#include "tests/support/markup_check.h"

namespace keel::report {
namespace {

namespace fs = std::filesystem;

std::vector<MetricFacts> error_facts(const Run&) { return {{"error", "%", false}}; }

std::vector<Run> three_runs() {
  std::vector<Run> runs{made_run("a", {{"model.norm", "none"}, {"train.seed", "1"}}, {40, 20}),
                        made_run("b", {{"model.norm", "none"}, {"train.seed", "2"}}, {50, 10}),
                        made_run("c", {{"model.norm", "a<b"}, {"train.seed", "1"}}, {30})};
  runs[2].outcome = Outcome::kDiverged;
  runs[2].message = "step 12: loss is nan";
  runs[2].test.clear();
  return runs;
}

TEST_CASE("report: tables of groups, settings and runs") {
  const std::vector<Run> runs = three_runs();
  const auto reports = make_report(runs, error_facts);
  REQUIRE(reports.size() == 1);
  CHECK(settings_rows(reports[0]) ==
        Rows{{"group", "model.norm"}, {"none", "none"}, {"a<b", "a<b"}});
  CHECK(result_rows(reports[0]) ==
        Rows{{"group", "runs", "test error %, last", "valid error %, best", "test loss, last",
              "train loss, last", "epochs", "time", "items/s"},
             {"none", "2", "15.00 +- 7.07", "15.00 +- 7.07", "0.5000 +- 0.0000", "0.1500 +- 0.0707",
              "2.0", "1:00", "1000 +- 0"},
             {"a<b", "0 of 1", "-", "-", "-", "-", "-", "-", "-"}});
  const Rows rows = run_rows(reports[0]);
  REQUIRE(rows.size() == 4);
  CHECK(rows[2] == std::vector<std::string>{"b", "none", "2", "finished", "2.0", "1:00", "10.00",
                                            "10.00", "0.5000", "0.1000"});
  CHECK(rows[3][3] == "diverged: step 12: loss is nan");
  CHECK(rows[3][6] == "-");
  CHECK(rows[3][7] == "30.00");
}

TEST_CASE("report: a number of one run has the standard error of its test rows") {
  std::vector<Run> runs{made_run("a", {{"model.norm", "none"}}, {40, 20}),
                        made_run("b", {{"model.norm", "layernorm"}}, {30, 0})};
  for (Run& run : runs) run.counted["last"] = {{"error", 250}};
  const auto reports = make_report(runs, error_facts);
  // sqrt(0.2 0.8 / 250) = 0.0253; of none of 250 the limit is 1 - 0.05^(1/250) = 1.19 %.
  const Rows rows = result_rows(reports[0]);
  CHECK(rows[1][2] == "20.00 (s.e. 2.53)");
  CHECK(rows[2][2] == "0.00 (below 1.19)");
  CHECK(rows[1][3] == "20.00");  // the validation's are not known
  CHECK(rows[1][4] == "0.5000");
  CHECK(run_rows(reports[0])[1][6] == "20.00 (s.e. 2.53)");
  runs[1].test["last"] = {{"error", 100}};
  CHECK(result_rows(make_report(runs, error_facts)[0])[2][2] == "100.00 (above 98.81)");
  CHECK(report_json(reports)[0]["groups"][0]["runs"][0]["counted"]["test.error.last"] == 250);
  // Several seeds have a deviation.
  runs = three_runs();
  for (Run& run : runs) run.counted["last"] = {{"error", 250}};
  CHECK(result_rows(make_report(runs, error_facts)[0])[1][2] == "15.00 +- 7.07");
}

TEST_CASE("report: as JSON") {
  const std::vector<Run> runs = three_runs();
  const auto json = report_json(make_report(runs, error_facts));
  REQUIRE(json.size() == 1);
  CHECK(json[0]["model"] == "mlp");
  CHECK(json[0]["differing"] == nlohmann::ordered_json{"model.norm"});
  const auto& groups = json[0]["groups"];
  CHECK(groups[0]["group"] == "none");
  CHECK(groups[0]["results"]["test.error.last"]["mean"] == 15);
  CHECK(groups[0]["results"]["test.error.last"]["n"] == 2);
  CHECK(groups[1]["results"]["test.error.last"] == nlohmann::ordered_json{{"n", 0}});
  CHECK(groups[1]["runs"][0]["message"] == "step 12: loss is nan");
}

TEST_CASE("report: files that can be read, one chart each, names that cannot lead astray") {
  const test::TempDir temp;
  std::vector<Run> runs = three_runs();
  runs[0].curves.push_back({"valid", "../../x y", {1, 2}, {1, 2}});
  runs[0].curves.push_back({"valid", ".._.._x_y", {1, 2}, {1, 2}});
  runs[1].model = "../<odd>";
  const auto paths = write_report(temp / "deep/report", make_report(runs, error_facts));
  std::vector<std::string> names;
  for (const fs::path& path : paths) {
    CHECK(path.parent_path() == temp / "deep/report");
    REQUIRE(fs::exists(path));
    names.push_back(path.filename());
    CAPTURE(names.back());
    if (path.extension() != ".csv") CHECK(test::well_formed(test::read_bytes(path)));
  }
  CHECK(names == std::vector<std::string>{"report.html", "runs.csv", "curves.csv",
                                          "mlp-train-loss.svg", "mlp-valid-error.svg",
                                          "mlp-valid-.._.._x_y.svg", "mlp-valid-.._.._x_y-2.svg",
                                          "_.__odd_-train-loss.svg", "_.__odd_-valid-error.svg"});
  const std::string html = test::read_bytes(temp / "deep/report/report.html");
  CHECK(test::texts_of(html, "h2") == std::vector<std::string>{"mlp", "../&lt;odd&gt;"});
  CHECK(test::texts_of(html, "figure").size() == 6);
  CHECK(html.find("15.00 \u00B1 7.07") == std::string::npos);  // the seeds are of two models now
  CHECK(html.find("20.00") != std::string::npos);
}

TEST_CASE("report: the page names the computer that the runs tell of") {
  const test::TempDir temp;
  std::vector<Run> runs = three_runs();
  for (Run& run : runs) {
    run.facts = {{"run.processor", "a processor"}, {"run.backend_description", "a backend"}};
  }
  write_report(temp.path(), make_report(runs, error_facts));
  const std::string html = test::read_bytes(temp / "report.html");
  CHECK(html.find("Measured on: a processor (a backend).") != std::string::npos);
}

TEST_CASE("report: a deviation is one of several seeds") {
  std::vector<Run> runs = three_runs();
  const auto of = [&](std::size_t group) {
    return report_json(make_report(
        runs, error_facts))[0]["groups"][group]["results"]["valid.error.best"]["deviation"];
  };
  CHECK(of(0).get<double>() > 0);
  runs[2].outcome = Outcome::kFinished;
  CHECK(of(1).is_null());
}

TEST_CASE("report: all digits of runs and curves in CSV") {
  const test::TempDir temp;
  std::vector<Run> runs = three_runs();
  runs[0].test["last"] = {{"error", 1.0 / 3}};
  write_report(temp.path(), make_report(runs, error_facts));
  const std::string table = test::read_bytes(temp / "runs.csv");
  CHECK(
      table.starts_with("run,model,group,seed,outcome,epochs,steps,seconds,items_per_second,"
                        "test.error.last,valid.error.best,test.loss.last,train.loss.last,"
                        "model.norm\n"
                        "a,mlp,none,1,finished,2,20,60,1000,0.3333333333333333,20,,0.2,none\n"));
  CHECK(std::ranges::count(table, '\n') == 4);
  const std::string curves = test::read_bytes(temp / "curves.csv");
  CHECK(
      curves.starts_with("run,group,seed,split,quantity,step,epoch,value\n"
                         "a,none,1,train,loss,10,1,0.4\n"));
  CHECK(std::ranges::count(curves, '\n') == 1 + 2 * (2 + 2 + 1));
}

TEST_CASE("report: a folder that cannot be made is refused") {
  const test::TempDir temp;
  test::write_bytes(temp / "file", "content");
  const std::vector<Run> runs = three_runs();
  test::check_refused([&] { write_report(temp / "file/x", make_report(runs, error_facts)); },
                      (temp / "file/x").string(), "cannot make this folder", ErrorKind::kIo);
}

}  // namespace
}  // namespace keel::report
