// The singular values of embeddings: by hand, of trainings and of runs.
#include "studies/singular_values.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "backends/backends.h"
#include "tests/studies/short_run.h"
#include "tests/support/checks.h"
#include "tests/support/small_run.h"
#include "tests/support/temp_dir.h"

namespace keel::study {
namespace {

TEST_CASE("singular values: by hand") {
  // diag(3, 4) in rows that are turned, a row that is left out, and one of zeros.
  const Tensor table = Tensor::of<double>({4, 2}, {3, 0, 100, 100, 0, -4, 0, 0});
  const std::vector<double> values = singular_values_of(table, {true, false, true, true});
  REQUIRE(values.size() == 2);
  CHECK(values[0] == doctest::Approx(4));
  CHECK(values[1] == doctest::Approx(3));
  const SpectrumSummary summary = summary_of(values);
  CHECK(summary.area == doctest::Approx(7.0 / 8));
  const double p = 4.0 / 7, q = 3.0 / 7;
  CHECK(summary.effective_rank == doctest::Approx(std::pow(p, -p) * std::pow(q, -q)));
  CHECK(summary_of({2, 0}).effective_rank == doctest::Approx(1));
}

TEST_CASE("study: singular-values of runs takes those of a norm as its seeds, and no seed twice") {
  const auto backend = make_backend(default_backend());
  const test::TempDir temp;
  Options options{*backend};
  options.runs = small_translations(temp.path(), {"layernorm", "powernorm"}, 2);
  const Result result = run_small("singular-values", options);
  REQUIRE(result.tables.at(0).rows.size() == 3);
  CHECK(result.tables[0].rows[2][0] == "powernorm of translation");
  CHECK(result.tables[0].rows[2][4] == "2");
  REQUIRE(result.checks.size() == 1);
  CHECK(result.checks[0].claim == "area of powernorm of translation - layernorm of translation's");
  CHECK_FALSE(result.checks[0].judged);  // these are no runs on WMT14
  options.runs.push_back(options.runs.front());
  test::check_refused([&] { run_small("singular-values", options); },
                      "[singular-values] --run: expected runs that differ in task, norm or seed");
  // A network of another width is no seed of the same.
  test::train_in(temp / "wide", test::small_job({"model.norm=layernorm", "model.width=12",
                                                 "train.seed=3", "train.max_steps=1"},
                                                "translation"));
  options.runs.back() = test::step_file(temp / "wide", 1).string();
  test::check_refused([&] { run_small("singular-values", options); },
                      "[singular-values] --run: expected runs of one recipe, got model.width = ");
}

TEST_CASE("study: singular-values of the table of a translation, padding and fillers left out") {
  const auto backend = make_backend(default_backend());
  Options options = on_small_pairs(*backend);
  const Result result = run_small("singular-values", options);
  REQUIRE(result.tables.at(0).rows.size() == 4);
  CHECK(result.tables[0].rows[1][1] == "target/table");
  REQUIRE(result.tables.at(1).rows.size() == 1 + 3 * 8);
  CHECK(result.tables[1].rows[1][1] == "1");
  for (const Check& c : result.checks) CHECK_FALSE(c.judged);
  options.settings.push_back({"model.embeddings", "target"});
  options.norms = {"layernorm"};
  CHECK(run_small("singular-values", options).tables[0].rows[1][1] == "source/table");
  options.site = "target/table";
  CHECK(run_small("singular-values", options).tables[0].rows[1][1] == "target/table");
  options.site = "encoder1";
  test::check_refused(
      [&] { run_small("singular-values", options); },
      "[singular-values] --site: expected a table such as source/table, got encoder1");
  const Options digits = on_small_digits(*backend);
  test::check_refused([&] { run_small("singular-values", digits); },
                      "[singular-values] --site: mnist_mlp has no embeddings");
}

// The small pairs under the names of WMT's files.
void write_wmt(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  for (const auto& [from, to] :
       {std::pair{"train", "train"}, {"val", "val"}, {"test_2016_flickr", "test"}}) {
    for (const auto& [language, side] : {std::pair{"en", "src"}, {"de", "targ"}}) {
      std::filesystem::copy_file(test::small_pairs() / fmt::format("{}.{}", from, language),
                                 folder / fmt::format("{}-{}.txt", side, to));
    }
  }
}

TEST_CASE("study: singular-values judges three runs of either norm on WMT, and none with others") {
  const auto backend = make_backend(default_backend());
  const test::TempDir temp;
  write_wmt(temp / "data");
  Options options{*backend};
  const auto add_run = [&](const std::string& norm, int seed, const std::string& corpus) {
    const std::filesystem::path folder = temp / fmt::format("{}-{}{}", corpus, norm, seed);
    // All pairs make one batch.
    test::Settings settings{"model.norm=" + norm, fmt::format("train.seed={}", seed),
                            "train.epochs=1", "train.batch=100000"};
    if (corpus == "wmt") {
      settings.insert(settings.end(), {"model.corpus=wmt", "model.languages=en-de",
                                       "data.source=" + (temp / "data").string()});
    }
    test::train_in(folder, test::small_job(settings, "translation"));
    options.runs.push_back(test::step_file(folder, 1));
  };
  for (const char* norm : {"layernorm", "powernorm"}) {
    for (const int seed : {1, 2, 3}) add_run(norm, seed, "wmt");
  }
  const Result result = run_small("singular-values", options);
  REQUIRE(result.checks.size() == 1);
  CHECK(result.checks[0].judged);
  std::ranges::reverse(options.runs);  // PowerNorm's first
  const Result turned = run_small("singular-values", options);
  REQUIRE(turned.checks.size() == 1);
  CHECK(turned.checks[0].judged);
  CHECK(turned.checks[0].claim == result.checks[0].claim);
  CHECK(turned.checks[0].measured == doctest::Approx(result.checks[0].measured));
  // A training that has not ended is not what the source speaks of.
  const std::filesystem::path ended = temp / "wmt-layernorm1/result.json";
  std::filesystem::rename(ended, temp / "aside");
  CHECK_FALSE(run_small("singular-values", options).checks.at(0).judged);
  std::filesystem::rename(temp / "aside", ended);
  add_run("batchnorm", 1, "multi30k");
  for (const Check& c : run_small("singular-values", options).checks) CHECK_FALSE(c.judged);
}

}  // namespace
}  // namespace keel::study
