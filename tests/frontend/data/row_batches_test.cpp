// Batches of a fixed number of rows of like lengths.
#include "frontend/data/row_batches.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "tests/support/input_checks.h"

namespace keel::data {
namespace {

using Rows = std::vector<std::int64_t>;

std::int64_t length_of(std::uint32_t, std::int64_t row) { return 1 + row * 37 % 50; }

Rows rows_of(RowBatches& batches, std::uint32_t epoch) {
  Rows all;
  for (std::int64_t step = 0; step < batches.steps(); ++step) {
    const auto rows = batches.at(epoch, step).rows;
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

TEST_CASE("row batches: an epoch of training has whole batches of like lengths, each row once") {
  RowBatches batches(100, {.order = length_of}, {.batch = 8, .shuffle = 3});
  CHECK(batches.steps() == 12);
  CHECK(batches.capacity() == 8);
  CHECK(batches.skipped() == 4);
  std::set<Rows> orders;
  std::set<std::int64_t> ever_out;
  for (std::uint32_t epoch = 0; epoch < 6; ++epoch) {
    Rows rows = rows_of(batches, epoch);
    CHECK(orders.insert(rows).second);
    std::ranges::sort(rows);
    CHECK(std::ranges::adjacent_find(rows) == rows.end());
    REQUIRE(rows.size() == 96);
    for (std::int64_t row = 0; row < 100; ++row) {
      if (!std::ranges::binary_search(rows, row)) ever_out.insert(row);
    }
    bool ascends = true;
    std::int64_t last = 0;
    for (std::int64_t step = 0; step < batches.steps(); ++step) {
      const auto batch = batches.at(epoch, step).rows;
      REQUIRE(batch.size() == 8);
      // 100 rows have each length twice: eight of them that are sorted span no more than 6.
      CHECK(length_of(0, batch.back()) - length_of(0, batch.front()) <= 6);
      ascends = ascends && length_of(0, batch.front()) >= last;
      last = length_of(0, batch.front());
    }
    CHECK_FALSE(ascends);
  }
  CHECK(ever_out.size() > 10);
}

TEST_CASE("row batches: orders are pure functions of seed and epoch, each in its own right") {
  const auto order = [](std::uint64_t seed, std::uint32_t epoch) {
    RowBatches batches(100, {.order = length_of}, {.batch = 8, .shuffle = seed});
    rows_of(batches, epoch + 1);  // looking ahead changes nothing
    return rows_of(batches, epoch);
  };
  CHECK(order(1, 2) == order(1, 2));
  CHECK(order(1, 2) != order(2, 1));
  CHECK(order(1, 2) != order(1, 1));
}

TEST_CASE("row batches: in evaluation all rows come, group by group, shorter ones first") {
  RowBatches batches(23, {.order = length_of}, {.batch = 4, .group = 10});
  CHECK(batches.capacity() == 4);
  CHECK(batches.skipped() == 0);
  CHECK(batches.steps() == 3 + 3 + 1);
  const Rows rows = rows_of(batches, 5);
  REQUIRE(rows.size() == 23);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CHECK(rows[i] / 10 == std::int64_t(i) / 10);
    if (i % 10 > 0) CHECK(length_of(0, rows[i - 1]) <= length_of(0, rows[i]));
  }
  RowBatches whole(23, {.order = length_of}, {.batch = 400});
  CHECK(whole.steps() == 1);
  CHECK(whole.capacity() == 23);
}

TEST_CASE("row batches: a length may differ from epoch to epoch") {
  const auto turns = [](std::uint32_t epoch, std::int64_t row) {
    return epoch % 2 == 0 ? row + 1 : 100 - row;
  };
  RowBatches batches(40, {.order = turns}, {.batch = 4, .shuffle = 1});
  for (const std::uint32_t epoch : {0u, 1u}) {
    for (std::int64_t step = 0; step < 10; ++step) {
      const auto rows = batches.at(epoch, step).rows;
      for (std::size_t i = 1; i < rows.size(); ++i) {
        CHECK(turns(epoch, rows[i - 1]) < turns(epoch, rows[i]));
      }
    }
  }
}

TEST_CASE("row batches: refusals") {
  const auto refused = [](std::int64_t rows, const RowBatchOptions& options, const char* part) {
    CHECK(test::refuses(ErrorKind::kUsage, part,
                        [&] { RowBatches(rows, {.order = length_of}, options); }));
  };
  refused(0, {}, "rows: expected 1 or more, got 0");
  refused(5, {.batch = 0}, "batch: expected 1 or more, got 0");
  refused(5, {.batch = 6, .shuffle = 1}, "batch: expected at most the 5 rows");
  RowBatches batches(5, {.order = length_of}, {.batch = 2});
  CHECK(
      test::refuses(ErrorKind::kUsage, "step: expected 0 to 2, got 3", [&] { batches.at(0, 3); }));
}

}  // namespace
}  // namespace keel::data
