// Evaluation of a whole data set: the same for any batching, and in evaluation mode.
#include "frontend/train/evaluator.h"

#include <doctest/doctest.h>

#include "backends/reference/backend.h"
#include "frontend/train/step_graph.h"
#include "tests/support/small_run.h"

namespace keel::train {
namespace {

using testing::small_config;

// Loss and error by running each row alone.
Evaluation one_by_one(Backend& backend, Variables& variables, const Config& config,
                      const data::Dataset& dataset) {
  Program program(backend, variables, build_evaluate(config, 1));
  Feeder feeder(config.model().inputs(), dataset, 1);
  Evaluation total{0, 0, dataset.rows()};
  for (std::int64_t row = 0; row < dataset.rows(); ++row) {
    feeder.feed(program, std::vector{row});
    program.run();
    total.loss += program.scalar("loss") / double(dataset.rows());
    total.error += program.scalar("errors") / double(dataset.rows());
  }
  return total;
}

TEST_CASE("evaluator: full batches and a smaller last one count every row once") {
  reference::ReferenceBackend backend;
  for (const char* norm : {"layernorm", "batchnorm"}) {
    const Config config = small_config({std::string("model.norm=") + norm});
    const task::Splits data = config.model().load(config.data().request());
    Variables variables(backend, 3);
    Evaluator evaluator(backend, variables, config);
    evaluator.declare();
    // 275 rows are one batch of 256 and 19 more; 60 and 256 leave one program unused.
    const data::Dataset even = data.train.take(256);
    for (const data::Dataset* part : {&data.train, &data.test, &even}) {
      const data::Dataset& dataset = *part;
      CAPTURE(dataset.rows());
      const Evaluation e = evaluator.run(dataset);
      const Evaluation expected = one_by_one(backend, variables, config, dataset);
      CHECK(e.rows == dataset.rows());
      CHECK(e.loss == doctest::Approx(expected.loss).epsilon(1e-12));
      CHECK(e.error == doctest::Approx(expected.error).epsilon(1e-12));
      CHECK(e.error > 0.3);
      CHECK(e.error <= 1);
    }
  }
}

TEST_CASE("evaluator: declares what a checkpoint for evaluation needs, and no more") {
  reference::ReferenceBackend backend;
  const Config config = small_config({"model.norm=batchnorm"});
  Variables variables(backend, 3);
  Evaluator(backend, variables, config).declare();
  CHECK(variables.all().contains("fc1/weight"));
  CHECK(variables.all().contains("fc1/norm/running_var"));
  CHECK_FALSE(variables.all().contains("fc1/weight.m"));
}

}  // namespace
}  // namespace keel::train
