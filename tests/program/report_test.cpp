// keel report
#include <cstdlib>
#include <map>

#include "tests/program/helpers.h"
#include "tests/support/markup_check.h"

namespace keel::cli {
namespace {

using test::small_train;

// Two seeds of two norms, an epoch each.
struct ReportRuns {
  test::TempDir temp;
  std::vector<std::string> folders;

  ReportRuns() {
    for (const char* norm : {"layernorm", "batchnorm"}) {
      for (const char* seed : {"1", "2"}) add(norm, seed, {"train.epochs=2", "train.log_every=4"});
    }
  }
  void add(const std::string& norm, const std::string& seed, const test::Settings& settings,
           const std::string& model = "mnist_mlp") {
    folders.push_back(temp / fmt::format("{}-{}-{}", model, norm, seed));
    auto arguments = small_train(folders.back(), settings, model);
    arguments.insert(arguments.end(), {"--norm", norm, "--seed", seed});
    REQUIRE(run_keel(arguments).code == 0);
  }
  ProcessResult report(std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments{"report", "--out", temp / "report"};
    arguments.insert(arguments.end(), folders.begin(), folders.end());
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_keel(arguments);
  }
};

TEST_CASE("report program: seeds are grouped, and the page holds all of it" *
          doctest::test_suite("slow")) {
  const ReportRuns runs;
  const Json json = json_of(runs.report({"--json", runs.folders[0] + "/."}));
  const Json& section = json.at("sections").at(0);
  CHECK(section.at("model") == "mnist_mlp");
  CHECK(section.at("differing") == Json{"model.norm"});
  REQUIRE(section.at("groups").size() == 2);
  CHECK(section.at("groups")[0].at("group") == "layernorm");
  CHECK(section.at("groups")[1].at("group") == "batchnorm");
  CHECK(section.at("groups")[0].at("runs").size() == 2);  // a run given twice counts once
  const Json& error = section.at("groups")[0].at("results").at("test.error.best");
  CHECK(error.at("n") == 2);
  CHECK(error.at("mean") <= 100);
  for (const char* name : {"report.html", "runs.csv", "curves.csv", "mnist_mlp-train-loss.svg",
                           "mnist_mlp-valid-loss.svg", "mnist_mlp-valid-error.svg"}) {
    CAPTURE(std::string(name));
    const std::string path = runs.temp / fmt::format("report/{}", name);
    CHECK(std::ranges::find(json.at("files"), Json(path)) != json.at("files").end());
    CHECK(std::filesystem::exists(path));
  }
  const std::string page = test::read_bytes(runs.temp / "report/report.html");
  CHECK(test::well_formed(page));
  CHECK(holds(page, "Measured on: "));
  CHECK_FALSE(holds(page, "unknown"));
  const auto chart = [&] {
    return test::read_bytes(runs.temp / "report/mnist_mlp-valid-error.svg");
  };
  CHECK(holds(chart(), "fill-opacity"));
  CHECK(holds(chart(), ">epoch<"));
  CHECK(runs.report({"--axis", "updates", "--log-x"}).code == 0);
  CHECK(holds(chart(), ">update (logarithmic)<"));
}

TEST_CASE("report program: text, a section for each model, a run that was cut off" *
          doctest::test_suite("slow")) {
  ReportRuns runs;
  runs.folders.resize(2);
  runs.add("none", "1", {"train.max_steps=1"}, "text_classifier");
  // As if it had been killed while it wrote.
  std::filesystem::remove(runs.folders[1] + "/result.json");
  const std::string metrics = test::read_bytes(runs.folders[1] + "/metrics.jsonl");
  test::write_bytes(runs.folders[1] + "/metrics.jsonl", metrics.substr(0, metrics.size() - 9));
  const ProcessResult result = runs.report();
  CAPTURE(result.out);
  CHECK(result.code == 0);
  CHECK(result.err.empty());
  CHECK(result.out.starts_with("mnist_mlp\ngroup      runs    test error %, last"));
  CHECK(holds(result.out, "\nmnist_mlp  1 of 2  "));
  CHECK(holds(result.out, "\ntext_classifier\ngroup "));
  CHECK(holds(result.out, "written: "));
}

TEST_CASE("report program: runs that are missing or broken are named") {
  const test::TempDir temp;
  const std::string run = temp / "run", out = temp / "report";
  check_refusal(run_keel({"report", run, "--out", out}), 4, run);
  REQUIRE(run_keel(small_train(run, {"train.max_steps=1"})).code == 0);
  test::write_bytes(run + "/result.json", "{");
  check_refusal(run_keel({"report", run, "--out", out}), 3, run + "/result.json");
  test::write_bytes(run + "/metrics.jsonl", "{}\n");
  check_refusal(run_keel({"report", run, "--out", out}), 3, run + "/metrics.jsonl:1");
  test::write_bytes(run + "/config.toml", "[[[");
  check_refusal(run_keel({"report", run, "--out", out}), 3, run + "/config.toml");
  CHECK_FALSE(std::filesystem::exists(out));
  check_refusal(run_keel({"report"}), 2, "runs");
}

TEST_CASE("report program: charts as PDF and PNG, which take a program that may not be there") {
  ReportRuns runs;
  runs.folders.resize(1);
  const std::string folder = runs.temp / "bin";  // of programs, with nothing but env
  std::filesystem::create_directory(folder);
  std::filesystem::create_symlink("/usr/bin/env", folder + "/env");
  const test::ProcessOptions without{.environment = {{"PATH", folder}}};
  std::vector<std::string> words{"report", "--pdf", "--out", runs.temp / "report", runs.folders[0]};
  check_refusal(run_keel(words, without), 4, "rsvg-convert");
  words[1] = "--png";
  check_refusal(run_keel(words, without), 4, "librsvg2-bin");
  CHECK_FALSE(std::filesystem::exists(runs.temp / "report"));
  if (std::system("rsvg-convert --version > /dev/null 2>&1") != 0) {
    MESSAGE("skipped: no rsvg-convert");
    return;
  }
  words.emplace_back("--pdf");
  CHECK(run_keel(words).code == 0);
  const auto chart = [&](const std::string& format) {
    return test::read_bytes(runs.temp / ("report/mnist_mlp-valid-error." + format));
  };
  const std::string pdf = chart("pdf"), png = chart("png");
  CHECK(pdf.starts_with("%PDF-"));
  CHECK(png.starts_with("\x89PNG"));
  CHECK(run_keel(words).code == 0);
  CHECK((chart("pdf") == pdf));
  CHECK((chart("png") == png));
  std::map<std::string, int> counts;
  for (const auto& entry : std::filesystem::directory_iterator(runs.temp / "report")) {
    ++counts[entry.path().extension()];
  }
  CHECK(counts[".svg"] > 0);
  CHECK(counts[".pdf"] == counts[".svg"]);
  CHECK(counts[".png"] == counts[".svg"]);
}

}  // namespace
}  // namespace keel::cli
