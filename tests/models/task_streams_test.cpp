// The rows of every task, whatever its data, are neither lost nor counted twice.
#include <doctest/doctest.h>

#include <set>

#include "tests/models/every_task.h"
#include "tests/support/checks.h"

namespace keel::models {
namespace {

// The rows of an epoch in the order in which they come, without padding.
std::vector<std::int64_t> rows_of(task::Stream& stream, std::uint32_t epoch) {
  std::vector<std::int64_t> rows;
  for (std::int64_t step = 0; step < stream.steps(epoch); ++step) {
    const double items = stream.items(epoch, step);
    const task::Batch& batch = stream.at(epoch, step);
    CHECK(batch.items == items);
    for (const std::int64_t row : batch.rows) {
      if (row >= 0) rows.push_back(row);
    }
  }
  return rows;
}

TEST_CASE("tasks: an epoch has every row once but for those that are named" *
          doctest::test_suite("slow")) {
  for_each_task([](const train::Job& job) {
    const auto stream = stream_of(job, task::Split::kTrain, training(job, 1));
    for (const std::uint32_t epoch : {0u, 3u}) {
      const std::vector<std::int64_t> rows = rows_of(*stream, epoch);
      const std::set<std::int64_t> once(rows.begin(), rows.end());
      CHECK(once.size() == rows.size());
      std::int64_t skipped = stream->rows() - std::ssize(rows), named = 0;
      for (const task::Skipped& left : stream->skipped()) named += left.rows;
      CHECK(skipped <= named);
    }
  });
}

TEST_CASE("tasks: items are called rows where they are rows, and only there" *
          doctest::test_suite("slow")) {
  for_each_task([](const train::Job& job) {
    const auto stream = stream_of(job, task::Split::kTrain, training(job, 1));
    bool are_rows = true;
    for (std::int64_t step = 0; step < stream->steps(0); ++step) {
      const task::Batch& batch = stream->at(0, step);
      const auto padding = std::ranges::count(batch.rows, -1);
      are_rows = are_rows && batch.items == double(std::ssize(batch.rows) - padding);
    }
    CHECK(job.task().item_unit() == (are_rows ? "rows" : "tokens"));
  });
}

TEST_CASE("tasks: orders are drawn by seed and epoch, each in its own right") {
  for_each_task([](const train::Job& job) {
    const auto one = stream_of(job, task::Split::kTrain, training(job, 1)),
               two = stream_of(job, task::Split::kTrain, training(job, 2));
    const std::vector<std::int64_t> late = rows_of(*one, 2);
    CHECK((late != rows_of(*two, 1)) == facts_of(job).draws_orders);
    CHECK((late != rows_of(*one, 1)) == facts_of(job).draws_orders);
    CHECK(late == rows_of(*one, 2));
  });
}

TEST_CASE("tasks: batches have the types that the model asks for, and one of the stream's shapes") {
  for_each_task([](const train::Job& job) {
    const auto stream = stream_of(job, task::Split::kTrain, training(job, 1));
    const std::vector<task::Sizes> shapes = stream->shapes();
    for (std::int64_t step = 0; step < stream->steps(0); ++step) {
      const task::Batch& batch = stream->at(0, step);
      CHECK(std::ranges::count(shapes, batch.sizes) == 1);
      CHECK(std::ssize(batch.rows) == batch.sizes[0]);
      const auto inputs = job.network().inputs(batch.sizes);
      REQUIRE(inputs.size() == batch.values.size());
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        CHECK(batch.values[i].type() == inputs[i].type);
      }
    }
  });
}

}  // namespace
}  // namespace keel::models
