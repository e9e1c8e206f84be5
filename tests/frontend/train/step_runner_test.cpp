// Steps of a run: how an update is split into micro-batches does not change what it draws.
#include "frontend/train/step_runner.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "backends/reference/backend.h"
#include "frontend/train/shard_runner.h"
#include "models/mnist_mlp/model.h"
#include "src/ops/dropout.h"
#include "tests/support/small_run.h"

namespace keel::train {
namespace {

// The MLP after dropout, kept by the input.
class DroppedNetwork final : public models::MnistMlpNetwork {
 public:
  using MnistMlpNetwork::MnistMlpNetwork;
  task::Outputs build(nn::Net& net, const task::Inputs& in) const override {
    const Value kept = ops::dropout(net.graph, in["image"], net.random_key("dropout"), 0.5, 7);
    return MnistMlpNetwork::build(net, task::Inputs({{"image", kept}, {"label", in["label"]}}));
  }
};

class Dropped final : public models::MnistMlp {
 public:
  std::shared_ptr<const task::Network> restore(const task::Assets&) const override {
    return std::make_shared<const DroppedNetwork>(options_);
  }
};

// Two updates of 64 rows each, of `batch` rows at a time.
struct RunnerTrained {
  reference::ReferenceBackend backend;
  Variables variables{backend, 1};
  std::vector<double> losses;

  explicit RunnerTrained(std::int64_t batch, std::int64_t shards = 1) {
    const Job job = test::job_of(
        std::make_unique<Dropped>(),
        {"data.source=" + test::small_digits().string(), "model.hidden=16",
         fmt::format("train.batch={}", batch), fmt::format("train.accumulate={}", 64 / batch),
         fmt::format("train.shards={}", shards)});
    const task::Splits& data = job.splits();
    const auto rows =
        data.stream(task::Split::kTrain, {.batch = batch, .shuffle = 1, .shard_range = {}});
    OneRank one;
    const auto steps = make_steps(backend, variables, job, *rows, {one});
    for (std::int64_t step = 0; step < 2; ++step) {
      steps->start({.step = step, .epoch = 0, .batch = step * 64 / batch});
      losses.push_back(steps->next(true)->loss);
    }
  }
};

void check_same_masks(const RunnerTrained& whole, const RunnerTrained& parts) {
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

// In float64 and up to its rounding: the sums of a batch are added up in another order.
TEST_CASE("step runner: four micro-batches of 16 rows draw the masks of one batch of 64") {
  check_same_masks(RunnerTrained(64), RunnerTrained(16));
}

TEST_CASE("step runner: so do micro-batches that are cut into shards") {
  const RunnerTrained whole(64);
  check_same_masks(whole, RunnerTrained(64, 5));
  check_same_masks(whole, RunnerTrained(16, 3));
}

TEST_CASE("step runner: the epochs that a limit of updates completes") {
  reference::ReferenceBackend backend;
  // Eight updates in an epoch.
  const struct {
    std::int64_t limit, steps, epochs;
  } cases[] = {{0, 24, 3},  {1, 1, 0},   {7, 7, 0},   {8, 8, 1},  {9, 9, 1},
               {16, 16, 2}, {23, 23, 2}, {24, 24, 3}, {25, 24, 3}};
  for (const auto& c : cases) {
    CAPTURE(c.limit);
    Variables variables(backend, 1);
    const Job job = test::small_job({"train.epochs=3", fmt::format("train.max_steps={}", c.limit)});
    const auto rows = job.splits().stream(
        task::Split::kTrain, {.batch = job.train().batch, .shuffle = 1, .shard_range = {}});
    const StepRunner runner(backend, variables, job, *rows);
    CHECK(runner.total_steps() == c.steps);
    CHECK(runner.total_epochs() == c.epochs);
  }
}

TEST_CASE("step runner: every update draws masks of its own, of the same rows, too") {
  reference::ReferenceBackend backend;
  Variables variables(backend, 1);
  const Job job = test::job_of(
      std::make_unique<Dropped>(),
      {"data.source=" + test::small_digits().string(), "model.hidden=16", "train.lr=1e-20"});
  const auto rows = job.splits().stream(task::Split::kTrain, {.batch = 64, .shuffle = 1});
  StepRunner runner(backend, variables, job, *rows);
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
