// Carries in runs: training, evaluation and checkpoints of a network whose batches go on from each
// other.
#include <doctest/doctest.h>

#include <cmath>

#include "backends/backends.h"
#include "frontend/train/step_runner.h"
#include "tests/support/checks.h"
#include "tests/support/same_run.h"
#include "tests/support/temp_dir.h"
#include "tests/support/trace_task.h"

namespace keel::train {
namespace {

namespace fs = std::filesystem;
using test::check_same_end;
using test::kTraceCarry;
using test::kTraceSteps;
using test::Settings;
using test::step_file;
using test::trace_job;
using test::train_in;
using test::operator+;

const std::string kTensor = std::string(kCarryPrefix) + kTraceCarry;

// The loss of a split, each lane from number to number in float64.
double loss_by_hand(const Variables& variables, task::Stream& stream) {
  const Tensor w = variables.read("w/weight"), u = variables.read("u/weight"),
               v = variables.read("v/weight");
  const Tensor wb = variables.read("w/bias"), ub = variables.read("u/bias"),
               vb = variables.read("v/bias");
  const std::int64_t lanes = stream.shapes()[0][0], units = v.elements();
  const std::vector<double> zeros(static_cast<std::size_t>(units));
  std::vector<std::vector<double>> h(static_cast<std::size_t>(lanes), zeros);
  double sum = 0;
  for (std::int64_t step = 0; step < stream.steps(0); ++step) {
    const task::Batch& batch = stream.at(0, step);
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      std::vector<double>& now = h[std::size_t(lane)];
      if (batch.values[2].at(lane) != 0) now = zeros;
      const std::vector<double> before = now;
      double said = vb.at(0);
      for (std::int64_t j = 0; j < units; ++j) {
        double into = batch.values[0].at(lane) * w.at(j) + wb.at(j) + ub.at(j);
        for (std::int64_t i = 0; i < units; ++i)
          into += before[std::size_t(i)] * u.at(i * units + j);
        now[std::size_t(j)] = std::tanh(into);
        said += now[std::size_t(j)] * v.at(j);
      }
      sum += std::pow(said - batch.values[1].at(lane), 2);
    }
  }
  return sum / double(stream.rows());
}

TEST_CASE("carry run: an evaluation goes on from batch to batch, and each begins anew") {
  const auto backend = make_backend("reference");
  const Job job = trace_job();
  Variables variables(*backend, 1);
  Evaluator evaluator(*backend, variables, job);
  for (const task::Split split : {task::Split::kTrain, task::Split::kValid, task::Split::kTrain}) {
    const auto rows = job.splits().stream(split, {});
    const Evaluation first = evaluator.run(*rows), again = evaluator.run(*rows);
    CHECK(first.loss == doctest::Approx(loss_by_hand(variables, *rows)).epsilon(1e-12));
    CHECK(first.loss == again.loss);
  }
}

TEST_CASE("carry run: training learns from it, and an evaluation leaves it alone") {
  const test::TempDir temp;
  const Settings settings = {"train.epochs=40"};
  const Summary seldom = train_in(temp / "seldom", trace_job(settings));
  const Summary often =
      train_in(temp / "often", trace_job(settings + Settings{"train.eval_every=3u"}));
  CHECK(seldom.test.loss < 0.02);  // 0.04 is the loss that x alone allows
  const auto last = [&](const char* folder) {
    return io::read_safetensors(step_file(temp / folder, 40 * kTraceSteps)).tensors;
  };
  const auto some = last("seldom"), all = last("often");
  REQUIRE(some.contains(kTensor));
  for (const auto& [name, tensor] : some) test::check_close(all.at(name), tensor, 0);
}

TEST_CASE("carry run: N steps and N more are 2N steps, byte for byte") {
  for (const Settings& settings : {Settings{}, Settings{"train.accumulate=2"},
                                   Settings{"train.accumulate=2", "train.on_nonfinite=skip"}}) {
    for (const std::int64_t half : {3, 5}) {
      const test::TempDir temp;
      const auto until = [&](std::int64_t step) {
        return trace_job(settings + Settings{fmt::format("train.max_steps={}", step)});
      };
      train_in(temp / "straight", until(2 * half));
      train_in(temp / "halves", until(half));
      train_in(temp / "halves", until(2 * half), true);
      check_same_end(temp / "halves", temp / "straight", 2 * half);
    }
  }
}

TEST_CASE("carry run: step checkpoints have it, the best weights and an average do not") {
  const test::TempDir temp;
  train_in(temp.path(), trace_job({"train.average_last=2", "train.checkpoint_every=5"}));
  const auto has_carry = [](const fs::path& path) {
    return io::read_safetensors_info(path).tensors.contains(kTensor);
  };
  CHECK(has_carry(step_file(temp.path(), 2 * kTraceSteps)));
  CHECK_FALSE(has_carry(temp / "checkpoints/best.safetensors"));
  CHECK_FALSE(has_carry(RunFolder{temp.path()}.average()));
}

// A training of some steps, and its checkpoint.
struct TraceRun {
  std::unique_ptr<Backend> backend = make_backend(default_backend());
  Job job;
  Variables variables{*backend, 1};
  std::unique_ptr<task::Stream> rows = job.splits().stream(task::Split::kTrain, {});
  StepRunner runner{*backend, variables, job, *rows};

  explicit TraceRun(const Settings& settings = {}) : job(trace_job(settings)) {}
  void step(std::int64_t number) {
    runner.start({.step = number, .batch = number * job.train().accumulate});
    runner.drop();
  }
  io::TensorFile checkpoint() { return to_checkpoint({}, job, variables, &runner.carries()); }
  void load(const io::TensorFile& file) {
    from_checkpoint(file, "here", job, variables, &runner.carries());
  }
};

TEST_CASE("carry run: a checkpoint without carries begins with zeros, one of others is refused") {
  TraceRun run;
  run.step(0);
  io::TensorFile file = run.checkpoint();
  Tensor carry = std::move(file.tensors.at(kTensor));
  file.tensors.erase(kTensor);
  run.load(file);
  CHECK(run.runner.carries().read().empty());
  file.tensors.emplace(std::string(kCarryPrefix) + "other", carry.clone());
  const auto refused = [&](std::string_view text) {
    test::check_refused([&] { run.load(file); }, text, "", ErrorKind::kBadInput);
  };
  refused("here: no carry is called 'other'");
  file.tensors.clear();
  for (auto& [name, tensor] : run.checkpoint().tensors) file.tensors.emplace(name, tensor.clone());
  file.tensors.insert_or_assign(kTensor, carry.to(DType::kI32));
  refused("here: cell/h: expected a carry of f32, got i32(4, 3)");
}

TEST_CASE("carry run: an update that is undone takes back what its micro-batches left") {
  TraceRun run({"train.accumulate=3", "train.on_nonfinite=skip"});
  run.step(0);
  const Tensor before = std::move(run.runner.carries().read().at(kTraceCarry));
  run.step(1);
  CHECK(run.runner.carries().read().at(kTraceCarry).at(0) != before.at(0));
  run.runner.undo();
  test::check_close(run.runner.carries().read().at(kTraceCarry), before, 0);
}

TEST_CASE("carry run: after a rollback the next batch does not go on from the checkpoint's") {
  const Settings settings = {"train.epochs=1", "train.checkpoint_every=3"};
  const test::TempDir temp;
  const Summary summary = train_in(
      temp.path(),
      trace_job(settings + Settings{"model.spoilt_step=4", "train.on_nonfinite=rollback"}));
  REQUIRE(summary.state.skipped == 2);  // steps 3 and 4, for step 3 is that of the checkpoint
  TraceRun run(settings);
  for (const std::int64_t step : {0, 1, 2}) run.step(step);
  run.runner.carries().clear();
  for (std::int64_t step = 5; step < kTraceSteps; ++step) run.step(step);
  const io::TensorFile expected = run.checkpoint();
  const io::TensorFile file = io::read_safetensors(step_file(temp.path(), kTraceSteps));
  REQUIRE(file.tensors.contains(kTensor));
  for (const auto& [name, tensor] : file.tensors) {
    CAPTURE(name);
    test::check_close(expected.tensors.at(name), tensor, 0);
  }
}

}  // namespace
}  // namespace keel::train
