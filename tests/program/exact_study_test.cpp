// keel study on the exact studies: what it prints, and what it refuses.
#include "studies/study.h"
#include "tests/program/helpers.h"

namespace keel::cli {
namespace {

TEST_CASE("study: a study as JSON and as text") {
  const Json result = json_of(run_keel({"study", "lemma2", "--json"}));
  CHECK(result.at("study") == "lemma2");
  CHECK(result.at("holds") == true);
  CHECK(result.at("tables").at(0).at("rows").size() == 4);
  for (const Json& check : result.at("checks")) CHECK(check.at("holds") == true);
  const ProcessResult text = run_keel({"study", "lemma2"});
  CHECK(text.code == 0);
  CHECK(holds(text.out, "Shen et al. 2020"));
  for (const Json& check : result.at("checks")) {
    CHECK(holds(text.out, "ok  " + check.at("claim").get<std::string>()));
  }
}

TEST_CASE("study: the seed is followed") {
  const std::string zero = run_keel({"study", "lemma2"}).out;
  CHECK(run_keel({"study", "lemma2", "--seed", "0", "--backend", "reference"}).out == zero);
  CHECK(run_keel({"study", "lemma2", "--seed", "1"}).out != zero);
}

TEST_CASE("study: an exact one needs float64 and no second seed") {
  check_refusal(run_keel({"study", "lemma2", "--backend", "null"}), 2,
                "[lemma2] --backend: expected reference, got null");
  check_refusal(run_keel({"study", "lemma2", "--seeds", "2"}), 2,
                "[lemma2] --seeds: expected 0 or 1, got 2");
  check_refusal(run_keel({"study", "lemma2"}, {.environment = {{"KEEL_BACKEND", "onednm"}}}), 2,
                "backend: 'onednm' is unknown; nearest: 'onednn'");
  check_refusal(run_keel({"study", "lemma3"}), 2, "nearest: 'lemma2'");
}

TEST_CASE("study: text cuts long tables, and says what is not judged" *
          doctest::test_suite("slow")) {
  const ProcessResult text = run_keel({"study", "figure7"});
  CHECK(text.code == 0);
  CHECK(holds(text.out, "... and 260 rows more, with --json"));
  CHECK(holds(text.out, "not judged  pn_v + ls: share"));
  const Json result = json_of(run_keel({"study", "figure7", "--json"}));
  CHECK(result.at("tables").at(1).at("rows").size() == 320);
  CHECK(result.at("checks").at(0).at("holds") == true);
  CHECK(result.at("checks").at(1).at("holds").is_null());
}

TEST_CASE("study: a row of a table is an object of numbers and texts, a name a column" *
          doctest::test_suite("slow")) {
  const ProcessResult text = run_keel({"study", "theorem1"});
  CHECK(holds(text.out, "m = mean(g xhat), q = mean(xhat^2)"));
  const Json rows =
      json_of(run_keel({"study", "theorem1", "--json"})).at("tables").at(0).at("rows");
  REQUIRE(rows.size() == 10);
  CHECK(rows[0].size() == 8);
  CHECK(rows[0].at("norm") == "detachnorm");
  CHECK(rows[0].at("eps") == 0);
  CHECK(rows[0].at("mean error") < 1e-12);
  CHECK(rows[0].at("variance error") < 1e-12);
  CHECK(rows[9].at("eps") == 0.5);
}

TEST_CASE("study: the help tells the exact ones, and those that take a task") {
  const std::string help = run_keel({"study", "--help"}).out;
  const std::size_t second = help.find("Studies of a task"), end = help.find("examples:");
  const auto names = [](const std::string& part, const std::string& name) {
    return holds(part, " " + name + ",") || holds(part, " " + name + "\n");
  };
  for (const study::Study& study : study::studies()) {
    CAPTURE(study.name);
    CHECK(names(help.substr(0, second), study.name) == (study.exact || study.in_float64));
    CHECK(names(help.substr(second, end - second), study.name) == study.takes_task);
  }
}

TEST_CASE("study: all of them are listed") {
  const Json rows = json_of(run_keel({"list", "studies", "--json"}));
  REQUIRE(rows.size() == study::studies().size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CHECK(rows[i].at("study") == study::studies()[i].name);
    CHECK_FALSE(rows[i].at("source").get<std::string>().empty());
  }
}

}  // namespace
}  // namespace keel::cli
