// Captions of studies: the trainings of a figure, and how many of them a line shows.
#include "studies/sample.h"

#include <doctest/doctest.h>

#include <string>

#include "backends/backends.h"
#include "tests/studies/short_run.h"
#include "tests/support/small_run.h"
#include "tests/support/temp_dir.h"

namespace keel::study {
namespace {

TEST_CASE("sample: a caption names trainings, the number of seeds and the seeds") {
  Sample sample;
  CHECK(sample.caption("loss") == "loss");
  sample.add("none", "mlp on digits, 60 training rows", 7);
  CHECK(sample.caption("loss") == "loss; mlp on digits, 60 training rows; n = 1 seed (7)");
  for (const int seed : {10, 7, 8}) sample.add("none", "mlp on digits, 60 training rows", seed);
  sample.add("layernorm", "cnn on digits", 9);
  CHECK(sample.caption("loss") ==
        "loss; cnn on digits and mlp on digits, 60 training rows; n = 1 to 3 seeds (7, 8, 9, 10)");
}

TEST_CASE("sample: the rows of a training are counted, those of a run are not read") {
  const auto backend = make_backend(default_backend());
  const Options options = on_small_digits(*backend);
  const train::Job job = zoo_job(options, 0, {"mnist_mlp", "none", 1});
  const std::string text = training_text(job);
  CHECK(text.starts_with("mnist_mlp on "));
  CHECK(text.ends_with(" training rows"));
  const test::TempDir temp;
  test::train_in(temp / "run", test::small_job({"train.max_steps=1"}));
  const StoredRun run = open_run(options, test::step_file(temp / "run", 1));
  CHECK(training_text(run).starts_with("mnist_mlp on "));
  CHECK(training_text(run).find("rows") == std::string::npos);
}

// A caption says what is drawn, on which data, and by how many seeds.
TEST_CASE("study: every figure of a task has a caption with its data and seeds") {
  const auto backend = make_backend(default_backend());
  for (const char* name : {"convergence", "covariate-shift", "noisy-batchnorm", "statistics"}) {
    Options options = on_small_digits(*backend);
    options.seed = 3;
    for (const Drawing& drawing : run_small(name, options).drawings) {
      CAPTURE(drawing.name);
      const std::string& caption = drawing.plot.title;
      CHECK(caption.find("; mnist_mlp on ") != std::string::npos);
      CHECK(caption.ends_with(" training rows; n = 1 seed (3)"));
    }
  }
}

}  // namespace
}  // namespace keel::study
