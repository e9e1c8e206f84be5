// Rows of a data set as batches: order, scaling, columns that do not fit, and what is left out.
#include "frontend/data/table_rows.h"

#include <doctest/doctest.h>

#include <numeric>

#include "tests/support/checks.h"

namespace keel::data {
namespace {

TensorDataset three_rows() {
  TensorDataset dataset("three rows");
  dataset.add("pixels",
              Tensor::of<std::uint8_t>({3, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 255}));
  dataset.add("number", Tensor::of<float>({3}, {0.5f, 1.5f, 2.5f}));
  dataset.add("label", test::i32({3}, {7, 8, 9}));
  return dataset;
}

const std::vector<TableColumn> kColumns{{"pixels", DType::kF32, {4}, {.scale = 0.5f, .offset = -1}},
                                        {"number", DType::kF32, {}}};

// Rows 0 to count - 1, each its own number.
TensorDataset numbered(std::int64_t count) {
  TensorDataset dataset("numbered");
  Tensor number(DType::kI32, {count});
  std::iota(number.as<std::int32_t>().begin(), number.as<std::int32_t>().end(), 0);
  dataset.add("number", std::move(number));
  return dataset;
}

DataLoader table_stream(TensorDataset dataset, std::vector<TableColumn> columns,
                        const StreamOptions& options) {
  return {std::make_shared<TableRows>(std::move(dataset), std::move(columns)), options};
}

TEST_CASE("table rows: gathers, scales and reshapes the rows that are asked for") {
  DataLoader stream = table_stream(three_rows(), kColumns, {.batch = 2, .shuffle = {}});
  const std::int64_t two[] = {2, 0};
  const Batch& batch = stream.pick(two);
  CHECK(batch.sizes == Sizes{2});
  CHECK(batch.items == 2);
  CHECK(batch.rows == std::vector<std::int64_t>{2, 0});
  test::check_close(batch.values[0].to(DType::kF64),
                    test::f64({2, 4}, {3, 3.5, 4, 126.5, -1, -0.5, 0, 0.5}), 0);
  test::check_close(batch.values[1].to(DType::kF64), test::f64({2}, {2.5, 0.5}), 0);
}

TEST_CASE("table rows: in order every row comes once, and the last batch may be small") {
  DataLoader stream =
      table_stream(numbered(7), {{"number", DType::kI32}}, {.batch = 3, .shuffle = {}});
  CHECK(stream.steps(0) == 3);
  CHECK(stream.shapes() == std::vector<Sizes>{{3}, {1}});
  CHECK(stream.skipped().empty());
  std::int64_t next = 0;
  for (std::int64_t step = 0; step < 3; ++step) {
    const Batch& batch = stream.at(5, step);
    CHECK(batch.items == stream.items(5, step));
    for (std::size_t i = 0; i < batch.rows.size(); ++i) {
      CHECK(batch.rows[i] == next);
      CHECK(batch.values[0].as<std::int32_t>()[i] == next++);
    }
  }
  CHECK(next == 7);
}

TEST_CASE("table rows: a shuffled epoch is a pure function of its number and names its rest") {
  const StreamOptions options{.batch = 3, .shuffle = 4};
  DataLoader stream = table_stream(numbered(7), {{"number", DType::kI32}}, options),
             again = table_stream(numbered(7), {{"number", DType::kI32}}, options);
  CHECK(stream.steps(0) == 2);
  CHECK(stream.shapes() == std::vector<Sizes>{{3}});
  REQUIRE(stream.skipped().size() == 1);
  CHECK(stream.skipped()[0].rows == 1);
  const std::vector<std::int64_t> late = stream.at(9, 1).rows;
  stream.at(2, 0);
  CHECK(stream.at(9, 1).rows == late);
  CHECK(again.at(9, 1).rows == late);
  CHECK(again.at(8, 1).rows != late);
}

TEST_CASE("table rows: columns that do not fit are refused") {
  const auto refused = [&](const TableColumn& column, std::string_view part) {
    test::check_refused([&] { TableRows(three_rows(), {column}); }, "", part);
  };
  refused({"pixels", DType::kF32, {5}}, "input pixels: expected rows of f32(5), got u8(3, 2, 2)");
  refused({"pixels", DType::kI32, {4}}, "input pixels: expected rows of i32(4)");
  refused({"number", DType::kI32, {}}, "input number:");
  refused({"label", DType::kF32, {}}, "input label:");
  refused({"nothing", DType::kF32, {}}, "nothing");
}

}  // namespace
}  // namespace keel::data
