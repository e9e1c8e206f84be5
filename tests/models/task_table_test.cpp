// Promises of every task, whatever its data: results do not depend on batches, a run goes on where
// it stopped, and each backend trains it.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "backends/backends.h"
#include "frontend/train/evaluator.h"
#include "frontend/train/step_graph.h"
#include "frontend/train/step_runner.h"
#include "tests/models/every_task.h"
#include "tests/support/checks.h"
#include "tests/support/temp_dir.h"

namespace keel::models {
namespace {

TEST_CASE("tasks: a split's loss and metrics are the same for every size of batches" *
          doctest::test_suite("slow")) {
  const auto backend = make_backend("reference");
  for_each_task([&](const train::Job& job) {
    Variables variables(*backend, 3);
    train::Evaluator evaluator(*backend, variables, job);
    const auto measured = [&](std::int64_t batch) {
      return evaluator.run(*stream_of(job, task::Split::kTest, {.batch = batch, .shuffle = {}}));
    };
    const train::Evaluation whole = measured(4096);
    for (const std::int64_t batch : {1, 7, 32, 200}) {
      CAPTURE(batch);
      const train::Evaluation parts = measured(batch);
      CHECK(parts.rows == whole.rows);
      CHECK(parts.items == whole.items);
      if (!facts_of(job).compares_rows) {
        CHECK(parts.loss == doctest::Approx(whole.loss).epsilon(1e-12));
      }
      for (const train::Measured& m : whole.metrics) {
        CHECK(parts.at(m.info.name) == doctest::Approx(m.value).epsilon(1e-12));
      }
    }
  });
}

TEST_CASE("tasks: an epoch compiles one program for each shape that comes, and no more") {
  const auto backend = make_backend("null");
  for_each_task([&](const train::Job& job) {
    const auto stream = stream_of(job, task::Split::kTrain, training(job, 1));
    Variables variables(*backend, 1);
    train::StepRunner steps(*backend, variables, job, *stream);
    std::set<task::Sizes> met{stream->shapes().front()};
    train::StepPlace place;
    for (place.epoch = 0; place.epoch < 2; ++place.epoch) {
      const auto epoch = std::uint32_t(place.epoch);
      for (place.batch = 0; place.batch < stream->steps(epoch); ++place.batch) {
        met.insert(stream->at(epoch, place.batch).sizes);
        steps.start(place);
        while (steps.next(true) != nullptr) {
        }
        ++place.step;
      }
    }
    CHECK(steps.programs() == std::ssize(met));
  });
}

bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.bytes() == b.bytes() && std::memcmp(a.data(), b.data(), std::size_t(a.bytes())) == 0;
}

TEST_CASE("tasks: a run that goes on ends in the bytes of one that never stopped" *
          doctest::test_suite("slow")) {
  for_each_task([](const train::Job& job) {
    const test::TempDir temp;
    const auto small = [&](const char* steps) {
      return with_settings(job, {std::string("train.max_steps=") + steps, "train.eval_every=2u"});
    };
    test::train_in(temp / "straight", small("5"));
    test::train_in(temp / "parts", small("3"));
    test::train_in(temp / "parts", small("5"), true);
    const auto parameters = [&](const char* run) {
      return io::read_safetensors(test::step_file(temp / run, 5));
    };
    const io::TensorFile straight = parameters("straight"), parts = parameters("parts");
    REQUIRE(straight.tensors.size() == parts.tensors.size());
    for (const auto& [name, tensor] : straight.tensors) {
      CAPTURE(name);
      CHECK(same_bytes(tensor, parts.tensors.at(name)));
    }
  });
}

// The parameters after a few steps on so many threads.
std::map<std::string, Tensor> trained_on(const train::Job& job, int threads) {
  const auto backend = make_backend("onednn", {.threads = threads});
  const auto stream = stream_of(job, task::Split::kTrain, training(job, 1));
  Variables variables(*backend, 1);
  train::StepRunner steps(*backend, variables, job, *stream);
  for (train::StepPlace place; place.step < 4; ++place.step, ++place.batch) {
    steps.start(place);
    steps.next(true);
  }
  std::map<std::string, Tensor> values;
  for (const auto& [name, variable] : variables.all()) values[name] = variables.read(name);
  return values;
}

TEST_CASE("tasks: any number of threads gives the same bytes" * doctest::test_suite("slow")) {
  if (default_backend() != "onednn") {
    MESSAGE("skipped: the onednn backend is not built in");
    return;
  }
  for_each_task([](const train::Job& job) {
    const auto one = trained_on(job, 1);
    for (const int threads : {2, 3}) {
      CAPTURE(threads);
      const auto more = trained_on(job, threads);
      for (const auto& [name, value] : one) {
        CAPTURE(name);
        CHECK(same_bytes(value, more.at(name)));
      }
    }
  });
}

// The gathered gradients of micro-batches with these numbers of rows, one after the other.
std::map<std::string, Tensor> gathered(const train::Job& job,
                                       const std::vector<std::int64_t>& parts) {
  const auto backend = make_backend("reference");
  const auto stream = stream_of(job, task::Split::kTrain, {.batch = 4096, .shuffle = {}});
  const double items = stream->pick(first_rows(8)).items;
  Variables variables(*backend, 1);
  train::Feeder feeder(job.network());
  std::int64_t first = 0;
  for (const std::int64_t count : parts) {
    std::vector<std::int64_t> rows;
    for (std::int64_t i = 0; i < count; ++i) rows.push_back(first + i);
    const task::Batch& batch = stream->pick(rows);
    Program program(*backend, variables, train::build_accumulate(job, batch.sizes));
    feeder.feed(program, batch);
    program.feed("weight", Tensor::scalar(float(1 / items)));
    program.feed("step", Tensor::scalar(std::int32_t{5}));
    program.feed("first_row", Tensor::scalar(std::int32_t(first)));
    program.run();
    first += count;
  }
  std::map<std::string, Tensor> sums;
  for (const auto& [name, variable] : variables.all()) {
    if (name.ends_with(".sum")) sums[name] = variables.read(name, true);
  }
  return sums;
}

TEST_CASE("tasks: micro-batches gather the gradient of one batch, random numbers and all" *
          doctest::test_suite("slow")) {
  for_each_task(
      [](const train::Job& job) {
        if (facts_of(job).compares_rows) return;
        const auto whole = gathered(job, {8}), parts = gathered(job, {3, 1, 4});
        CHECK(whole.size() >= 4);
        for (const auto& [name, sum] : whole) {
          CAPTURE(name);
          test::check_close(parts.at(name), sum, 1e-12);
        }
      },
      {"train.accumulate=2"});
}

TEST_CASE("tasks: a checkpoint alone says what network it is of" * doctest::test_suite("slow")) {
  for_each_task([](const train::Job& job) {
    const train::Job one = with_settings(job, {"train.max_steps=1"});
    const test::TempDir temp;
    test::train_in(temp.path(), one);
    const auto path = test::step_file(temp.path(), 1);
    const io::TensorFile file = io::read_safetensors(path);
    const train::Job again = train::job_of_checkpoint(
        file, path, [](const std::string& name) { return find_model(name).make(); });
    CHECK(again.config().to_toml() == one.config().to_toml());
    CHECK(again.network().assets() == job.network().assets());
  });
}

// The dense layers of VGG have no norm, and do not stand the others' rate.
float learning_rate_of(const train::Job& job) {
  return job.task().name() == "cifar_vgg" ? 3e-3f : 1e-2f;
}

TEST_CASE("tasks: eight rows are learned by heart" * doctest::test_suite("slow")) {
  for_each_task([](const train::Job& job) {
    const auto backend = make_backend(default_backend());
    const auto stream = stream_of(job, task::Split::kTrain, {.batch = 4096, .shuffle = {}});
    const task::Batch& batch = stream->pick(first_rows(8));
    Variables variables(*backend, 1);
    Program step(*backend, variables, train::build_step(job, batch.sizes), {.guard = "grad_norm"});
    train::Feeder(job.network()).feed(step, batch);
    step.feed("weight", Tensor::scalar(float(1 / batch.items)));
    step.feed("lr", Tensor::scalar(learning_rate_of(job)));
    for (std::int32_t i = 0; i < 60; ++i) {
      step.feed("step", Tensor::scalar(i));
      step.run();
    }
    CHECK(step.scalar("loss") < facts_of(job).learned_loss);
  });
}

TEST_CASE("tasks: the first step's loss and gradient are the same on every backend" *
          doctest::test_suite("slow")) {
  for_each_task([](const train::Job& job) {
    const auto results = [&](const std::string& name) {
      const auto backend = make_backend(name);
      const auto stream = stream_of(job, task::Split::kTrain, training(job, 1));
      Variables variables(*backend, 1);
      train::StepRunner steps(*backend, variables, job, *stream);
      steps.start({});
      const train::StepResult* result = steps.next(true);
      return std::pair(result->loss, result->grad_norm);
    };
    const auto [loss, norm] = results("reference");
    for (const BackendEntry& backend : known_backends()) {
      if (!backend.missing.empty() || backend.name == "null") continue;
      CAPTURE(backend.name);
      const auto [own_loss, own_norm] = results(backend.name);
      // Means of many float32 numbers, each off by a few eps of numbers of size 1.
      CHECK(own_loss == doctest::Approx(loss).epsilon(1e-5));
      CHECK(own_norm == doctest::Approx(norm).epsilon(1e-4));
    }
  });
}

}  // namespace
}  // namespace keel::models
