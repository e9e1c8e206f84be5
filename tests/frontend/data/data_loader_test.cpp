// The one stream's work for the rows of every task.
#include "frontend/data/data_loader.h"

#include <algorithm>

#include "frontend/data/fixed_batches.h"
#include "frontend/data/row_batches.h"
#include "src/core/rng.h"
#include "tests/support/input_checks.h"

namespace keel::data {
namespace {

using Ints = std::vector<std::int32_t>;

// Row i has the numbers 1 to i % 3 + 1, and a draw of 0 to 999.
class Counts final : public Dataset {
 public:
  explicit Counts(std::int64_t rows) : Dataset({"counts", {{5, "are odd"}}}), rows_(rows) {}

  std::unique_ptr<BatchSampler> plan(const StreamOptions& options) const override {
    const auto length = [](std::uint32_t, std::int64_t row) { return row % 3 + 1; };
    return std::make_unique<RowBatches>(
        rows_,
        RowLengths{
            .order = length,
            .padded = [=](std::uint32_t e, std::int64_t r) -> Sizes { return {length(e, r)}; },
            .all = {{3, 2, 1}}},
        RowBatchOptions{options.batch, options.shuffle});
  }
  std::vector<Input> inputs(const Sizes& sizes) const override {
    return {{"numbers", {DType::kI32, {sizes[0], sizes[1]}}, -7},
            {"real", {DType::kF32, {sizes[0]}}, 0.5},
            {"mask", {DType::kU8, {sizes[0]}}}};
  }
  void put(Batch& batch, const RowVisit& visit) const override {
    const std::int64_t length = batch.sizes[1];
    for (std::int64_t i = 0; i <= visit.row % 3; ++i) {
      batch.values[0].as<std::int32_t>()[std::size_t(visit.place * length + i)] =
          std::int32_t(i + 1);
    }
    const Philox random(visit.seed.value_or(99), 1, visit.epoch);
    batch.values[1].as<float>()[std::size_t(visit.place)] =
        float(random.below(std::uint64_t(visit.row), 1000));
    batch.values[2].as<std::uint8_t>()[std::size_t(visit.place)] = 1;
  }
  double items(std::int64_t row) const override { return double(row % 3 + 1); }

 private:
  std::int64_t rows_;
};

DataLoader counted_stream(std::int64_t rows, const StreamOptions& options) {
  return {std::make_shared<Counts>(rows), options};
}

Ints numbers(const Batch& batch) {
  const auto values = batch.values[0].as<std::int32_t>();
  return {values.begin(), values.end()};
}

TEST_CASE("planned stream: places without a row hold what the inputs say of padding") {
  DataLoader stream = counted_stream(5, {.batch = 4});
  REQUIRE(stream.steps(0) == 2);
  // By length: 0 and 3, 1 and 4, then 2.
  CHECK(numbers(stream.at(0, 0)) == Ints{1, -7, 1, -7, 1, 2, 1, 2});
  const Batch& last = stream.at(0, 1);
  CHECK(last.rows == std::vector<std::int64_t>{2, -1, -1, -1});
  CHECK(numbers(last) == Ints{1, 2, 3, -7, -7, -7, -7, -7, -7, -7, -7, -7});
  CHECK(last.values[1].at(1) == 0.5);
  CHECK(last.values[2].at(0) == 1);
  CHECK(last.values[2].at(3) == 0);
  CHECK(last.items == 3);
  CHECK(stream.items(0, 1) == 3);
  CHECK(stream.items(0, 0) == 6);
}

// The tensors of a batch are kept for one of the same sizes: what one row wrote may be longer than
// what the next one does, and there may be fewer rows.
TEST_CASE("planned stream: nothing of an earlier batch is left in the next") {
  DataLoader stream = counted_stream(21, {.batch = 4});
  REQUIRE(stream.steps(0) == 6);
  const void* place = stream.at(0, 4).values[0].data();
  CHECK(numbers(stream.at(0, 4)) == Ints{1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3});
  const Batch& last = stream.at(0, 5);
  CHECK(last.values[0].data() == place);
  CHECK(last.rows == std::vector<std::int64_t>{20, -1, -1, -1});
  CHECK(numbers(last) == Ints{1, 2, 3, -7, -7, -7, -7, -7, -7, -7, -7, -7});
  for (std::int64_t at : {1, 2, 3}) {
    CHECK(last.values[1].at(at) == 0.5);
    CHECK(last.values[2].at(at) == 0);
  }
  CHECK(last.items == 3);
  stream.at(0, 4);
  const Batch& mixed = stream.at(0, 3);
  CHECK(mixed.values[0].data() == place);
  CHECK(numbers(mixed) == Ints{1, 2, -7, 1, 2, -7, 1, 2, 3, 1, 2, 3});
  CHECK(mixed.items == 10);
  CHECK(numbers(stream.at(0, 0)) == Ints{1, 1, 1, 1});
}

TEST_CASE("planned stream: an input of a kind that no batch has is refused") {
  Batch batch;
  CHECK(test::refuses(ErrorKind::kUsage, "input x: expected f32, i32 or u8, got f64", [&] {
    clear_batch(batch, {2}, {{"x", {DType::kF64, {2}}}});
  }));
}

TEST_CASE("planned stream: what is drawn for a row goes by seed, epoch and row alone") {
  const auto drawn = [](DataLoader& stream, std::uint32_t epoch, std::int64_t row) {
    for (std::int64_t step = 0; step < stream.steps(epoch); ++step) {
      const Batch& batch = stream.at(epoch, step);
      const auto at = std::ranges::find(batch.rows, row) - batch.rows.begin();
      if (at < std::ssize(batch.rows)) return batch.values[1].at(at);
    }
    return -1.0;
  };
  DataLoader whole = counted_stream(12, {.batch = 12, .shuffle = 3}),
             halves = counted_stream(12, {.batch = 6, .shuffle = 3}),
             other = counted_stream(12, {.batch = 12, .shuffle = 4}),
             plain = counted_stream(12, {});
  bool seeds_differ = false, epochs_differ = false;
  for (std::int64_t row = 0; row < 12; ++row) {
    CHECK(drawn(whole, 2, row) == drawn(halves, 2, row));
    CHECK(drawn(plain, 1, row) == Philox(99, 1, 0).below(std::uint64_t(row), 1000));
    seeds_differ = seeds_differ || drawn(whole, 2, row) != drawn(other, 2, row);
    epochs_differ = epochs_differ || drawn(whole, 2, row) != drawn(whole, 3, row);
  }
  CHECK(seeds_differ);
  CHECK(epochs_differ);
}

TEST_CASE("planned stream: rows that are picked come in that order, without padding") {
  DataLoader stream = counted_stream(9, {.batch = 4});
  const std::vector<std::int64_t> rows{4, 0};
  const Batch& batch = stream.pick(rows);
  CHECK(batch.sizes == Sizes{2, 2});
  CHECK(batch.rows == rows);
  CHECK(numbers(batch) == Ints{1, 2, 1, -7});
  CHECK(batch.items == 3);
  // As epoch 0 of a training has them.
  DataLoader training = counted_stream(9, {.batch = 4, .shuffle = 3});
  training.at(2, 0);
  CHECK(training.pick(rows).values[1].at(0) == Philox(3, 1, 0).below(4, 1000));
  CHECK(test::refuses(ErrorKind::kUsage, "row: expected 0 to 8, got 9",
                      [&] { stream.pick(std::vector<std::int64_t>{9}); }));
  CHECK(test::refuses(ErrorKind::kUsage, "row: expected 0 to 8, got -1",
                      [&] { stream.pick(std::vector<std::int64_t>{-1}); }));
}

TEST_CASE("planned stream: what the data left out, and in training the rows that fill no batch") {
  const std::vector<Skipped> of_data = counted_stream(10, {.batch = 4}).skipped();
  REQUIRE(of_data.size() == 1);
  CHECK(of_data[0].why == "are odd");
  const std::vector<Skipped> left = counted_stream(10, {.batch = 4, .shuffle = 1}).skipped();
  REQUIRE(left.size() == 2);
  CHECK(left[0].why == "are odd");
  CHECK(left[1].rows == 2);
  CHECK(left[1].why == "incomplete batch of 4; different rows each epoch");
  CHECK(counted_stream(8, {.batch = 4, .shuffle = 1}).skipped().size() == 1);
}

TEST_CASE("planned stream: splits make the rows of each split once") {
  std::vector<Split> made;
  const DatasetSplits splits([&](Split split) {
    made.push_back(split);
    return std::make_shared<const Counts>(8);
  });
  CHECK(made.empty());
  const auto a = splits.stream(Split::kValid, {}), b = splits.stream(Split::kValid, {});
  const auto c = splits.stream(Split::kTrain, {.batch = 4, .shuffle = 1});
  CHECK(made == std::vector{Split::kValid, Split::kTrain});
  CHECK(c->at(0, 1).rows ==
        DataLoader(std::make_shared<Counts>(8), {.batch = 4, .shuffle = 1}).at(0, 1).rows);
}

}  // namespace
}  // namespace keel::data
