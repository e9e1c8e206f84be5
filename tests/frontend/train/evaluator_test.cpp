// Evaluation of a whole data set: the same for any batching, and in evaluation mode.
#include "frontend/train/evaluator.h"

#include <doctest/doctest.h>

#include "backends/reference/backend.h"
#include "frontend/task/classification.h"
#include "frontend/train/step_graph.h"
#include "tests/support/checks.h"
#include "tests/support/small_run.h"

namespace keel::train {
namespace {

using test::small_job;

using test::Rows;

// Loss and error by running each row alone.
struct OneByOne {
  double loss = 0, error = 0;

  OneByOne(Backend& backend, Variables& variables, const Job& job, task::Split split) {
    Program program(backend, variables, build_evaluate(job, {1}));
    Rows rows(job, split);
    for (std::int64_t row = 0; row < rows.count(); ++row) {
      rows.feed(program, {{row}});
      program.run();
      loss += program.scalar("loss") / double(rows.count());
      error += 100 * program.scalar(sum_output("error")) / double(rows.count());
    }
  }
};

TEST_CASE("evaluator: full batches and a smaller last one count every row once") {
  reference::ReferenceBackend backend;
  for (const char* norm : {"layernorm", "batchnorm"}) {
    const Job job = small_job({std::string("model.norm=") + norm});
    const task::Splits& data = job.splits();
    Variables variables(backend, 3);
    Evaluator evaluator(backend, variables, job);
    evaluator.declare();
    for (const task::Split split : {task::Split::kTrain, task::Split::kTest}) {
      const OneByOne expected(backend, variables, job, split);
      // 275 and 60 rows: in one batch, in several with a smaller last one, one by one.
      for (const std::int64_t batch : {256, 275, 32, 7, 1}) {
        CAPTURE(batch);
        const auto rows = data.stream(split, {.batch = batch, .shuffle = {}});
        const Evaluation e = evaluator.run(*rows);
        CHECK(e.rows == rows->rows());
        CHECK(e.items == double(rows->rows()));
        CHECK(e.loss == doctest::Approx(expected.loss).epsilon(1e-12));
        CHECK(e.at("error") == doctest::Approx(expected.error).epsilon(1e-12));
        CHECK(e.at("error") > 30);
        CHECK(e.at("error") <= 100);
      }
    }
  }
}

// A stream that leaves its last row out, or gives its first one twice.
class BrokenStream : public task::Stream {
 public:
  BrokenStream(std::unique_ptr<task::Stream> whole, bool repeats)
      : whole_(std::move(whole)), repeats_(repeats) {}
  const std::string& source() const override { return whole_->source(); }
  std::int64_t rows() const override { return whole_->rows(); }
  std::int64_t steps(std::uint32_t epoch) override {
    return whole_->steps(epoch) + (repeats_ ? 1 : -1);
  }
  double items(std::uint32_t epoch, std::int64_t step) override {
    return whole_->items(epoch, step);
  }
  const task::Batch& at(std::uint32_t epoch, std::int64_t step) override {
    return whole_->at(epoch, step % whole_->steps(epoch));
  }
  const task::Batch& pick(std::span<const std::int64_t> rows) override {
    return whole_->pick(rows);
  }
  std::vector<task::Sizes> shapes() const override { return whole_->shapes(); }

 private:
  std::unique_ptr<task::Stream> whole_;
  bool repeats_;
};

TEST_CASE("evaluator: a row that is lost or counted twice is an error") {
  reference::ReferenceBackend backend;
  const Job job = small_job();
  Variables variables(backend, 3);
  Evaluator evaluator(backend, variables, job);
  const task::Splits& data = job.splits();
  const auto broken = [&](bool repeats) {
    return BrokenStream(data.stream(task::Split::kTest, {.batch = 8, .shuffle = {}}), repeats);
  };
  BrokenStream lost = broken(false), twice = broken(true);
  test::check_refused([&] { evaluator.run(lost); }, "evaluation: row 56 of 60 never came");
  test::check_refused([&] { evaluator.run(twice); }, "evaluation: row 0 of 60 came twice");
}

TEST_CASE("evaluator: a share is said with its standard error") {
  const task::MetricInfo error = task::error_metric().front();
  const Evaluation e{.loss = 0.0747,
                     .metrics = {{.info = error, .value = 2.5, .sum = 50, .count = 2000}},
                     .rows = 2000};
  // 100 sqrt(0.025 * 0.975 / 2000) = 0.349
  CHECK(text(e) == "error 2.50 % +- 0.35, loss 0.0747, 2000 rows");
  // n is what was counted, such as words, not the rows.
  Evaluation words = e;
  words.metrics[0].count = 100;
  words.items = 100;
  CHECK(text(words) == "error 2.50 % +- 1.56, loss 0.0747, 2000 rows");
  Evaluation other = e;
  other.metrics[0].count = 0;  // a scorer gave it
  CHECK(text(other) == "error 2.50 %, loss 0.0747, 2000 rows");
  other.metrics[0].count = 2000;
  other.metrics[0].info.unit = "";
  CHECK(text(other) == "error 2.50, loss 0.0747, 2000 rows");
  other.items = 31999;
  CHECK(text(other) == "error 2.50, loss 0.0747, 2000 rows, 31999 tokens");
}

TEST_CASE("evaluator: a share of nothing or of all has a limit in place of a standard error of 0") {
  const task::MetricInfo error = task::error_metric().front();
  Evaluation e{.metrics = {{.info = error, .value = 0, .sum = 0, .count = 250}}, .rows = 250};
  // 1 - 0.05^(1 / 250) = 0.01191
  CHECK(text(e) == "error 0.00 % (below 1.19, confidence 95 %), loss 0.0000, 250 rows");
  e.metrics[0].value = 100;
  CHECK(text(e) == "error 100.00 % (above 98.81, confidence 95 %), loss 0.0000, 250 rows");
  e.metrics[0].count = 1;
  CHECK(text(e) == "error 100.00 % (above 5.00, confidence 95 %), loss 0.0000, 250 rows");
}

TEST_CASE("evaluator: tells of every batch, and how many there are") {
  reference::ReferenceBackend backend;
  const Job job = small_job();
  Variables variables(backend, 3);
  Evaluator evaluator(backend, variables, job);
  const task::Splits& data = job.splits();
  const auto rows = data.stream(task::Split::kTest, {.batch = 16, .shuffle = {}});
  std::string told;
  evaluator.tell(
      [&](std::int64_t done, std::int64_t of) { told += fmt::format("{}/{} ", done, of); });
  evaluator.run(*rows);
  CHECK(told == "1/4 2/4 3/4 4/4 ");
}

TEST_CASE("evaluator: one program for each of the sizes met, kept") {
  reference::ReferenceBackend backend;
  const Job job = small_job();
  Variables variables(backend, 3);
  Evaluator evaluator(backend, variables, job);
  const task::Splits& data = job.splits();
  const auto rows = data.stream(task::Split::kTrain, {.batch = 32, .shuffle = {}});
  for (int epoch = 0; epoch < 3; ++epoch) evaluator.run(*rows);
  CHECK(evaluator.programs() == 2);  // 8 batches of 32 rows and one of 19
}

TEST_CASE("evaluator: declares what a checkpoint for evaluation needs, and no more") {
  reference::ReferenceBackend backend;
  const Job job = small_job({"model.norm=batchnorm"});
  Variables variables(backend, 3);
  Evaluator(backend, variables, job).declare();
  CHECK(variables.all().contains("fc1/weight"));
  CHECK(variables.all().contains("fc1/norm/running_var"));
  CHECK_FALSE(variables.all().contains("fc1/weight.m"));
}

}  // namespace
}  // namespace keel::train
