// keel reproduce: what a page says of runs that are there, and what it takes from them.
#include <cmath>
#include <sstream>

#include "tests/program/helpers.h"

namespace keel::cli {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// One training of digits, three updates long, of a table whose other columns are left out.
Words digits_cell(const fs::path& out) {
  return {"reproduce", "xu-table4", "--recipe",          "laptop", "--norms",   "none", "--seeds",
          "1",         "--set",     "train.max_steps=3", "--out",  out.string()};
}

// A training of captions for two epochs.
Words captions_figure(const fs::path& out) {
  return {"reproduce", "ba-figure1",
          "--recipe",  "laptop",
          "--norms",   "layernorm",
          "--seeds",   "1",
          "--data",    test::small_captions().string(),
          "--out",     out.string(),
          "--set",     "train.batch=8",
          "--set",     "train.epochs=2",
          "--set",     "train.eval_every=1e",
          "--set",     "model.width=16",
          "--set",     "model.word_width=8",
          "--set",     "model.fold=5"};
}

// Gives the validations of a run these values of a metric.
void set_validations(const fs::path& run, const std::string& metric,
                     const std::vector<double>& values) {
  std::istringstream lines(test::read_bytes(run / "metrics.jsonl"));
  std::string text, line;
  std::size_t seen = 0;
  while (std::getline(lines, line)) {
    Json json = Json::parse(line);
    if (json.value("split", "") == "valid") json[metric] = values.at(seen++);
    text += json.dump() + "\n";
  }
  REQUIRE(seen == values.size());
  test::write_bytes(run / "metrics.jsonl", text);
}

TEST_CASE("reproduce: the best of a figure is the largest value where more is better" *
          doctest::test_suite("slow")) {
  const test::TempDir temp;
  const fs::path out = temp / "out";
  const Words words = captions_figure(out);
  REQUIRE(run_keel(words).code == 0);
  // Two epochs were completed, and the figure is drawn along updates all the same.
  const std::string chart = test::read_bytes(out / "ba-figure1-valid_r1.svg");
  CHECK(holds(chart, ">update<"));
  CHECK_FALSE(holds(chart, ">epoch<"));
  set_validations(out / "coco-layernorm-laptop-seed1", "image_r1", {30, 20});
  const Json json = json_of(run_keel(with(words, {"--as-is", "--json"})));
  CHECK(json.at("cells")[0].at("column") == "valid_r1");
  CHECK(json.at("cells")[0].at("ours") == Json::array({30.0}));
}

TEST_CASE("reproduce: --as-is shows a run whose data have gone" * doctest::test_suite("slow")) {
  const test::TempDir temp;
  const fs::path data = temp / "digits", out = temp / "out";
  fs::copy(test::small_digits(), data, fs::copy_options::recursive);
  const Words cell = with(digits_cell(out), {"--tasks", "mnist"});
  REQUIRE(run_keel(with(cell, {"--data", data.string()})).code == 0);
  fs::remove_all(data);
  // The other column is empty.
  const Words words = with(digits_cell(out), {"--tasks", "mnist,rt", "--as-is", "--json"});
  for (const Words& given : {Words{}, Words{"--data", data.string()}, Words{"--data", "builtin"}}) {
    const Json json = json_of(run_keel(with(words, given)));
    REQUIRE(json.at("cells").size() == 2);
    const Json& rt = json.at("cells")[0];
    const Json& mnist = json.at("cells")[1];
    CHECK(rt.at("note") == "seed 1: to do");
    CHECK(mnist.at("ours").size() == 1);
    CHECK(holds(mnist.at("commands")[0].get<std::string>(), " --data " + data.string() + " "));
    const std::string page = test::read_bytes(out / "xu-table4.md");
    CHECK(holds(page, "- Data: " + data.string() + ".\n"));
    CHECK(holds(page, "MNIST, 3 layers, accuracy % [data here: train-images-idx3-ubyte"));
  }
}

TEST_CASE("reproduce: a finished training without a number says why, one with it how sure it is" *
          doctest::test_suite("slow")) {
  const test::TempDir temp;
  const fs::path out = temp / "out", result = out / "mnist-none-laptop-seed1/result.json";
  const Words words = with(digits_cell(out),
                           {"--tasks", "mnist", "--data", test::small_digits().string(), "--json"});
  const Json trained = json_of(run_keel(words));
  const double right = trained.at("cells")[0].at("mean");
  const double error = std::sqrt(right * (100 - right) / 10000);
  const std::string page = test::read_bytes(out / "xu-table4.md");
  CHECK(holds(page, fmt::format("- Binomial standard error of one training, in points: "
                                "mnist {:.2f} (of 10000 rows).\n",
                                error)));
  Json changed = Json::parse(test::read_bytes(result));
  changed.at("best_test").erase("error");
  test::write_bytes(result, changed.dump());
  const Json silent = json_of(run_keel(with(words, {"--as-is"})));
  CHECK(silent.at("cells")[0].at("ours").empty());
  CHECK(silent.at("cells")[0].at("note") == "seed 1: reports no error of best weights");
  CHECK_FALSE(holds(test::read_bytes(out / "xu-table4.md"), "Binomial"));
}

TEST_CASE("reproduce: a page names the recipes that its trainings have") {
  const test::TempDir temp;
  const auto page = [&](const std::string& recipe) {
    const ProcessResult result = run_keel(
        {"reproduce", "shen-table2", "--as-is", "--recipe", recipe, "--out", temp.path().string()});
    CAPTURE(result.err);
    CHECK(result.code == 0);
    return test::read_bytes(temp / "shen-table2.md");
  };
  CHECK(holds(page("paper"),
              "- Recipe: paper; wikitext103 by wikitext103; topic_bigram by laptop, which is "
              "smaller than the paper's, with model.scaling=layerscaling.\n"));
  CHECK(holds(page("release"),
              "- Recipe: release, which has a published program's settings; wikitext103 by "
              "wikitext103_release.\n"));
}

}  // namespace
}  // namespace keel::cli
