// Batches of a fixed number of rows: a permutation, a pure function of (seed, epoch).
#include "frontend/data/fixed_batches.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "tests/frontend/data/row_lists.h"
#include "tests/support/input_checks.h"

namespace keel::data {
namespace {

using test::refuses;

Rows epoch_of(FixedBatches& batches, std::uint32_t epoch) {
  Rows all;
  for (std::int64_t step = 0; step < batches.steps(epoch); ++step) {
    const auto rows = batches.at(epoch, step).rows;
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

FixedBatches shuffled(std::int64_t rows, std::int64_t batch, std::uint64_t seed = 1) {
  return FixedBatches(rows, {.batch = batch, .shuffle = seed});
}

TEST_CASE(
    "fixed batches: an epoch holds every row once, but for those after the last whole batch") {
  for (std::int64_t n : {1, 2, 7, 64, 1000}) {
    for (std::int64_t batch : {1, 3, 64, 1000}) {
      if (batch > n) continue;
      CAPTURE(n);
      CAPTURE(batch);
      FixedBatches batches = shuffled(n, batch);
      Rows rows = epoch_of(batches, 5);
      CHECK(std::ssize(rows) == n - n % batch);
      CHECK(batches.skipped() == n % batch);
      std::ranges::sort(rows);
      CHECK(std::ranges::adjacent_find(rows) == rows.end());
      CHECK((rows.front() >= 0 && rows.back() < n));
      if (n % batch == 0) CHECK(rows == identity(n));
    }
  }
}

TEST_CASE(
    "fixed batches: sizes of batches, with the last rows in evaluation and without in training") {
  FixedBatches kept(10, {.batch = 4});
  CHECK(kept.steps(0) == 3);
  CHECK(kept.at(0, 1).sizes == Sizes{4});
  CHECK(kept.at(0, 2).sizes == Sizes{2});
  CHECK(kept.at(0, 2).rows.size() == 2);
  CHECK(kept.shapes() == std::vector<Sizes>{{4}, {2}});
  CHECK(kept.skipped() == 0);
  FixedBatches dropped = shuffled(10, 4);
  CHECK(dropped.steps(0) == 2);
  CHECK(dropped.at(0, 1).rows.size() == 4);
  CHECK(dropped.shapes() == std::vector<Sizes>{{4}});
  CHECK(FixedBatches(8, {.batch = 4}).steps(0) == 2);
  CHECK(FixedBatches(8, {.batch = 4}).shapes() == std::vector<Sizes>{{4}});
  CHECK(FixedBatches(3, {.batch = 8}).shapes() == std::vector<Sizes>{{3}});
  CHECK(shuffled(8, 8).steps(0) == 1);
}

TEST_CASE("fixed batches: a split without rows is one batch of padding") {
  FixedBatches none(0, {.batch = 4});
  REQUIRE(none.steps(0) == 1);
  CHECK(none.at(0, 0).sizes == Sizes{1});
  CHECK(none.at(0, 0).rows.empty());
  CHECK(none.shapes() == std::vector<Sizes>{{1}});
}

TEST_CASE("fixed batches: without shuffling rows ascend") {
  FixedBatches batches(10, {.batch = 3});
  CHECK(epoch_of(batches, 0) == identity(10));
  CHECK(epoch_of(batches, 7) == identity(10));
}

TEST_CASE(
    "fixed batches: the order depends on the seed and the epoch, not on the size of batches") {
  FixedBatches a = shuffled(100, 10), b = shuffled(100, 5), c = shuffled(100, 10, 2);
  CHECK(epoch_of(a, 3) == epoch_of(b, 3));
  CHECK(epoch_of(a, 3) != epoch_of(a, 4));
  CHECK(epoch_of(a, 3) != epoch_of(c, 3));
}

TEST_CASE("fixed batches: any position can be resumed") {
  FixedBatches straight = shuffled(50, 8);
  for (std::uint32_t epoch = 0; epoch < 4; ++epoch) {
    for (std::int64_t step = 0; step < straight.steps(epoch); ++step) {
      FixedBatches resumed = shuffled(50, 8);
      CHECK(std::ranges::equal(straight.at(epoch, step).rows, resumed.at(epoch, step).rows));
    }
  }
  FixedBatches back = shuffled(50, 8);
  const Rows first = epoch_of(back, 0);
  epoch_of(back, 9);
  CHECK(epoch_of(back, 0) == first);
}

TEST_CASE("fixed batches: the order of an epoch never changes between versions") {
  FixedBatches batches = shuffled(10, 10);
  CHECK(epoch_of(batches, 0) == Rows{0, 7, 1, 9, 8, 5, 3, 2, 6, 4});
  CHECK(epoch_of(batches, 1) == Rows{7, 9, 0, 2, 5, 4, 8, 3, 6, 1});
}

TEST_CASE("fixed batches: every row is equally likely at every place") {
  constexpr std::size_t kRows = 5;
  std::array<std::array<int, kRows>, kRows> seen{};
  FixedBatches batches = shuffled(kRows, kRows);
  for (std::uint32_t epoch = 0; epoch < 5000; ++epoch) {
    const auto rows = batches.at(epoch, 0).rows;
    for (std::size_t place = 0; place < kRows; ++place) {
      ++seen[place][static_cast<std::size_t>(rows[place])];
    }
  }
  for (const auto& place : seen) {
    for (int count : place) CHECK(std::abs(count - 1000) < 140);  // five standard deviations
  }
}

TEST_CASE("fixed batches: rows of a batch stay while the next epoch is asked for") {
  FixedBatches batches = shuffled(50, 8);
  const auto rows = batches.at(4, 0).rows;
  batches.at(5, 0);
  CHECK(batches.at(4, 0).rows.data() == rows.data());
}

TEST_CASE("fixed batches: refusals") {
  const auto refused = [](std::string_view text, std::int64_t rows, const StreamOptions& options) {
    return refuses(ErrorKind::kUsage, text, [&] { FixedBatches(rows, options); });
  };
  CHECK(refused("batch: expected 1 or more, got 0", 10, {.batch = 0}));
  CHECK(refused("batch: expected 1 or more, got -3", 10, {.batch = -3}));
  CHECK(refused("rows: expected at most 2^32 - 1", std::int64_t{1} << 32, {.batch = 4}));
  CHECK(refused("batch: expected at most the 10 rows, got 11", 10, {.batch = 11, .shuffle = 1}));
  CHECK(refused("batch: expected at most the 0 rows, got 4", 0, {.batch = 4, .shuffle = 1}));
  FixedBatches batches = shuffled(10, 4);
  for (std::int64_t step : {-1, 2}) {
    CHECK(refuses(ErrorKind::kUsage, "step: expected 0 to 1", [&] { batches.at(0, step); }));
  }
  CHECK(refuses(ErrorKind::kUsage, "row: expected 0 to 9, got 10", [&] {
    batches.pick(Rows{0, 10});
  }));
}

}  // namespace
}  // namespace keel::data
