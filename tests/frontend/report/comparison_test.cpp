// A paper's table beside ours, and the time that it still takes.
#include "frontend/report/comparison.h"

#include <nlohmann/json.hpp>

#include "frontend/report/remaining.h"
#include "tests/frontend/report/helpers.h"
#include "tests/support/markup_check.h"

namespace keel::report {
namespace {

Comparison small_comparison() {
  ComparedCell done, failed, missing, silent;
  done.paper = "99.14";
  done.ours = {99, 98};
  done.epochs = 20;
  done.seconds = 61;
  done.commands = {"keel train a --seed 1", "keel train a --seed 2"};
  failed = done;
  failed.paper = "diverged";
  failed.ours.clear();
  failed.mark = "diverged";
  failed.note = "seed 1: diverged: loss | nan";
  missing.mark = "no data";
  missing.note = "DIR: expected x, \"y\"";
  Comparison comparison;
  comparison.title = "t: a & b";
  comparison.remarks = {"Seeds: 1, 2."};
  comparison.rows = {"none", "layernorm"};
  comparison.columns = {{"mnist", "MNIST, %", 1}, {"rt", "RT, %", 2}};
  comparison.cells = {{done, missing}, {failed, silent}};
  return comparison;
}

TEST_CASE("report comparison: the paper's value, ours over the seeds, or why there is none") {
  CHECK(compared_rows(small_comparison()) ==
        Rows{{"norm", "MNIST, %", "RT, %"},
             {"none", "99.14 / 98.5 +- 0.7 (2)", "- / no data"},
             {"layernorm", "diverged / diverged", "- / -"}});
  const Rows cells = cell_rows(small_comparison());
  REQUIRE(cells.size() == 5);
  CHECK(cells[1] ==
        std::vector<std::string>{"none", "mnist", "99.14", "98.5 +- 0.7", "2", "20.0", "1:01", ""});
  CHECK(cells[2] == std::vector<std::string>{"none", "rt", "-", "no data", "0", "-", "-",
                                             "DIR: expected x, \"y\""});
}

TEST_CASE("report comparison: Markdown, with every command once") {
  const std::string text = markdown_of(small_comparison(), "t");
  CAPTURE(text);
  CHECK(text.starts_with("# t: a & b\n\n- Seeds: 1, 2.\n"));
  CHECK(text.find("| none | 99.14 / 98.5 \u00B1 0.7 (2) | - / no data |\n") != std::string::npos);
  CHECK(text.find("loss \\| nan |") != std::string::npos);
  CHECK(
      text.ends_with("```sh\n# none, mnist\nkeel train a --seed 1\nkeel train a --seed 2\n```\n"));
}

TEST_CASE("report comparison: CSV with all digits, HTML well-formed, JSON") {
  CHECK(csv_of(small_comparison())
            .starts_with("norm,column,paper,mean,deviation,n,epochs,seconds,mark,note,commands\n"
                         "none,mnist,99.14,98.5,0.7071067811865476,2,20,61,,,"
                         "keel train a --seed 1; keel train a --seed 2\n"
                         "none,rt,,,,0,,,no data,\"DIR: expected x, \"\"y\"\"\",\n"));
  const std::string html = html_of(small_comparison());
  CHECK(test::well_formed(html));
  CHECK(test::texts_of(html, "h1") == std::vector<std::string>{"t: a &amp; b"});
  const auto json = json_of(small_comparison());
  CHECK(json["cells"][0]["mean"] == 98.5);
  CHECK(json["cells"][0]["ours"] == nlohmann::ordered_json{99.0, 98.0});
  CHECK(json["cells"][1]["mark"] == "no data");
  CHECK_FALSE(json["cells"][1].contains("mean"));
  CHECK_FALSE(json.contains("tables"));
}

TEST_CASE("report comparison: the tables of a study are in the page and in the JSON") {
  Comparison comparison;
  comparison.tables = {{"shift", {{"norm", "cosine"}, {"none", "0.9"}}}};
  CHECK(markdown_of(comparison, "t").find("## shift\n\n| norm | cosine |") != std::string::npos);
  const auto json = json_of(comparison);
  REQUIRE(json["tables"].size() == 1);
  CHECK(json["tables"][0]["title"] == "shift");
  CHECK(json["tables"][0]["rows"][1][1] == "0.9");
}

TEST_CASE("report comparison: the curves of a figure, and a deviation only of several seeds") {
  Comparison comparison = small_comparison();
  CHECK(test::texts_of(html_of(comparison), "figure").empty());
  comparison.charts = {{"nll", "NLL of a", {}}};
  comparison.charts[0].plot.series = {{"none", {1, 2}, {2, 1}}};
  const std::string html = html_of(comparison);
  CHECK(test::well_formed(html));
  CHECK(test::texts_of(html, "figcaption") == std::vector<std::string>{"NLL of a"});
  CHECK(markdown_of(comparison, "t").find("\n![NLL of a](t-nll.svg)\n") != std::string::npos);
  CHECK(json_of(comparison)["cells"][0]["deviation"].get<double>() > 0);
  comparison.cells[0][0].ours = {99};
  CHECK(json_of(comparison)["cells"][0]["deviation"].is_null());
  CHECK(csv_of(comparison).find("\nnone,mnist,99.14,99,,1,") != std::string::npos);
}

TEST_CASE("report remaining: epochs of one kind take as long as those that were measured") {
  const std::vector<Work> works{
      {"rt", 10, 4, 40}, {"rt", 10, 1, 60}, {"mnist", 2, 2, 9}, {"mnist", 4, 0, 0}};
  // rt: 100 s in 5 epochs, 15 to go; mnist: 4.5 s an epoch, 4 to go.
  CHECK(remaining_seconds(works, 1) == 15 * 20 + 4 * 4.5);
  CHECK(remaining_seconds(works, 2) == (15 * 20 + 4 * 4.5) / 2);
  CHECK(part_done(works) == doctest::Approx(7.0 / 26));
  CHECK_FALSE(remaining_seconds({{{"rt", 10, 0, 0}}}, 1).has_value());
  CHECK(remaining_seconds({}, 1) == 0);
  CHECK(part_done({}) == 1);
}

TEST_CASE("report remaining: epochs and time as metrics.jsonl has them") {
  const test::TempDir temp;
  CHECK(work_of(temp / "none", "rt", {.epochs = 10}).done == 0);
  RunFiles files;
  files.metrics +=
      "{\"step\":20,\"epoch\":2,\"split\":\"train\",\"loss\":1,\"seconds\":5.5}\n"
      "{\"step\":25,\"epoch\":2,\"loss\":1,\"seconds\":7}\n{\"step\":30,\"ep";
  files.write(temp / "run");
  const Work work = work_of(temp / "run", "rt", {.epochs = 10});
  CHECK(work.kind == "rt");
  CHECK(work.done == 2);
  CHECK(work.seconds == 5.5);
  CHECK(work.total == 10);
  // The last line counts the updates; ten epochs would be 100 of them.
  const Work limited = work_of(temp / "run", "rt", {.epochs = 10, .most_updates = 60});
  CHECK(limited.done == 25);
  CHECK(limited.seconds == 7);
  CHECK(limited.total == 60);
  CHECK(work_of(temp / "run", "rt", {.epochs = 10, .most_updates = 400}).total == 100);
  CHECK(work_of(temp / "none", "rt", {.epochs = 10, .most_updates = 400}).total == 400);
}

TEST_CASE("report: texts as one keep whole what each has of its own") {
  CHECK(merged_text({"rows (split 1)"}) == "rows (split 1)");
  CHECK(merged_text({"rows (split 1)", "rows (split 2)", "rows (split 3)"}) ==
        "rows (split 1, 2, 3)");
  CHECK(merged_text({"rows (split 1)", "rows (split 10)"}) == "rows (split 1, 10)");
  CHECK(merged_text({"train.txt", "other.txt"}) == "other, train.txt");
  CHECK(merged_text({"a b", "a b c"}) == "a b, b c");
  CHECK(merged_text({"a", "b"}) == "a, b");
}

}  // namespace
}  // namespace keel::report
