// keel study on the studies of a task: their options, and the files that they write.
#include "studies/study.h"
#include "tests/program/helpers.h"
#include "tests/support/small_run.h"
#include "tests/support/temp_dir.h"

namespace keel::cli {
namespace {

std::vector<std::string> small_study(const std::string& name,
                                     const std::vector<std::string>& more) {
  std::vector<std::string> arguments{"study",   name,
                                     "--task",  "mnist_mlp",
                                     "--data",  test::small_digits().string(),
                                     "--set",   "model.hidden=8",
                                     "--set",   "train.batch=32",
                                     "--steps", "4"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST_CASE("study: one of a task follows its options and writes tables and plots") {
  const test::TempDir temp;
  const std::string folder = temp / "a/b";
  const ProcessResult result = run_keel(
      small_study("convergence", {"--norm", "none", "--norm", "batchnorm{keep=0.5,eps=1e-3}",
                                  "--seeds", "2", "--seed", "3", "--output", folder, "--json"}));
  REQUIRE((result.code == 0 || result.code == 1));  // so short a training may show anything
  const Json json = Json::parse(result.out);
  CHECK(json.at("tables").at(0).at("rows").size() == 2);
  const Json& points = json.at("tables").at(1).at("rows");
  REQUIRE(points.size() == 2 * 2 * 4 * 2);
  CHECK(points.back().at("norm") == "batchnorm{keep=0.5,eps=1e-3}");
  CHECK(points.back().at("seed") == 4);
  CHECK(points.back().at("step") == 4);
  CHECK(json.at("checks").size() == 1);
  for (const char* name :
       {"convergence-1.csv", "train-loss.svg", "valid-loss.svg", "valid-error.svg"}) {
    CAPTURE(std::string(name));
    CHECK(std::filesystem::file_size(std::filesystem::path(folder) / name) > 100);
  }
  // The caption, whole in the title of the SVG.
  const std::string svg = test::read_bytes(std::filesystem::path(folder) / "valid-error.svg");
  CHECK(holds(svg,
              "<title>Validation error; lines: medians over seeds, bands: smallest to "
              "largest; mnist_mlp on "));
  CHECK(holds(svg, " training rows; n = 2 seeds (3, 4) (keel study convergence)</title>"));
  CHECK(holds(svg, ">validation error, %<"));
  const std::string csv = test::read_bytes(std::filesystem::path(folder) / "convergence-2.csv");
  CHECK(csv.starts_with("step,epoch,split,loss,metric,norm,seed\n"));
  CHECK(holds(csv, ",\"batchnorm{keep=0.5,eps=1e-3}\",4\n"));
}

TEST_CASE("study: a site is chosen by its name") {
  const Json json = json_of(
      run_keel(small_study("statistics", {"--norm", "batchnorm", "--site", "fc2/norm", "--json"})));
  CHECK(json.at("tables").at(0).at("rows").at(0).at("site") == "fc2/norm");
  check_refusal(run_keel(small_study("statistics", {"--site", "fc3/norm"})), 2,
                "site: 'fc3/norm' is unknown; nearest: 'fc");
}

TEST_CASE("study: of a norm that ran with several options the first are judged") {
  const auto checks = [](const std::vector<std::string>& norms) {
    std::vector<std::string> words{"study", "statistics", "--task", "translation", "--json"};
    for (const char* setting : {"model.layers=1", "model.width=16", "model.heads=2",
                                "model.feed_forward=16", "train.batch=128"}) {
      words.insert(words.end(), {"--set", setting});
    }
    words.insert(words.end(), {"--steps", "3", "--seeds", "1"});
    for (const std::string& norm : norms) words.insert(words.end(), {"--norm", norm});
    return Json::parse(run_keel(words).out).at("checks");
  };
  const Json alone = checks({"batchnorm"});
  REQUIRE(!alone.empty());
  for (const Json& check : alone) CHECK(check.at("seeds") == 1);
  CHECK(checks({"batchnorm", "batchnorm{eps=1e-3}"}) == alone);
}

TEST_CASE("study: options of a task are refused where there is none") {
  for (const char* option :
       {"--task", "--recipe", "--norm", "--data", "--steps", "--site", "--set"}) {
    const std::string value = std::string(option) == "--steps" ? "3" : "a=b";
    check_refusal(run_keel({"study", "mini-layernorm", option, value}), 2,
                  std::string("[mini-layernorm] ") + option + ": this study takes no task");
  }
  check_refusal(run_keel({"study", "convergence", "--png"}), 2, "--output");
  check_refusal(run_keel({"study", "convergence", "--steps", "-1"}), 2,
                "--steps: expected 0 or more, got -1");
  check_refusal(run_keel({"study", "convergence", "--task", "mnist_mpl"}), 2,
                "nearest: 'mnist_mlp'");
  check_refusal(run_keel({"study", "convergence", "--set", "model.hidden"}), 2,
                "--set: expected KEY=VALUE, got 'model.hidden'");
  check_refusal(run_keel({"study", "noisy-batchnorm", "--norm", "none"}), 2,
                "[noisy-batchnorm] --norm: it compares");
  check_refusal(run_keel({"study", "statistics", "--norm", "layernorm"}), 2,
                "model.norm: expected batchnorm, pn_v, powernorm or unifiednorm, got layernorm");
}

}  // namespace
}  // namespace keel::cli
