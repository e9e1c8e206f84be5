// Steps of a run: how an update is split into micro-batches does not change what it draws.
#include "frontend/train/step_runner.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "backends/reference/backend.h"
#include "models/mnist_mlp/model.h"
#include "src/ops/dropout.h"
#include "tests/support/small_run.h"

namespace keel::train {
namespace {

// The MLP behind dropout, kept by the input.
class Dropped : public models::MnistMlp {
 public:
  task::Outputs build(nn::Net& net, const task::Inputs& in) const override {
    const Value kept = ops::dropout(net.graph, in["image"], net.random_key("dropout"), 0.5, 7);
    return MnistMlp::build(net, task::Inputs({{"image", kept}, {"label", in["label"]}}));
  }
};

// Two updates of 64 rows each, of `batch` rows at a time.
struct RunnerTrained {
  reference::ReferenceBackend backend;
  Variables variables{backend, 1};
  std::vector<double> losses;

  explicit RunnerTrained(std::int64_t batch) {
    Config config(std::make_unique<Dropped>());
    config.set("data.source", test::small_digits().string());
    config.set("model.hidden", "16");
    config.set("train.batch", fmt::format("{}", batch));
    config.set("train.accumulate", fmt::format("{}", 64 / batch));
    config.validate();
    const auto data = config.model().load(config.data().request());
    const auto rows = data->stream(task::Split::kTrain, {.batch = batch, .shuffle = 1});
    StepRunner runner(backend, variables, config, *rows);
    for (std::int64_t step = 0; step < 2; ++step) {
      runner.start({.step = step, .epoch = 0, .batch = step * 64 / batch});
      losses.push_back(runner.next(true)->loss);
    }
  }
};

// In float64 and up to its rounding: the sums of a batch are added up in another order.
TEST_CASE("step runner: four micro-batches of 16 rows draw the masks of one batch of 64") {
  const RunnerTrained whole(64), parts(16);
  for (std::size_t step : {0, 1}) {
    CHECK(parts.losses[step] == doctest::Approx(whole.losses[step]).epsilon(1e-12));
  }
  CHECK(whole.losses[0] != doctest::Approx(whole.losses[1]).epsilon(1e-3));
  for (const auto& [name, variable] : whole.variables.all()) {
    CAPTURE(name);
    const Tensor a = whole.variables.read(name, true), b = parts.variables.read(name, true);
    double difference = 0, size = 0;
    for (std::int64_t e = 0; e < a.elements(); ++e) {
      difference = std::max(difference, std::abs(a.at(e) - b.at(e)));
      size = std::max(size, std::abs(a.at(e)));
    }
    CHECK(difference <= 1e-9 * size);
  }
}

TEST_CASE("step runner: every update draws masks of its own, of the same rows, too") {
  reference::ReferenceBackend backend;
  Variables variables(backend, 1);
  Config config(std::make_unique<Dropped>());
  config.set("data.source", test::small_digits().string());
  config.set("model.hidden", "16");
  config.set("train.lr", "1e-20");
  config.validate();
  const auto rows = config.model()
                        .load(config.data().request())
                        ->stream(task::Split::kTrain, {.batch = 64, .shuffle = 1});
  StepRunner runner(backend, variables, config, *rows);
  const auto loss_at = [&](std::int64_t step) {
    runner.start({.step = step, .epoch = 0, .batch = 0});
    return runner.next(true)->loss;
  };
  const double loss = loss_at(0);
  CHECK(loss_at(0) == doctest::Approx(loss).epsilon(1e-12));
  CHECK(loss_at(1) != doctest::Approx(loss).epsilon(1e-6));
}

}  // namespace
}  // namespace keel::train
