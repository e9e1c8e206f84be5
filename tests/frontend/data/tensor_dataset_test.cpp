// Named columns: what may be added, found and sliced.
#include "frontend/data/tensor_dataset.h"

#include "tests/support/input_checks.h"

namespace keel::data {
namespace {

using test::refuses;

TensorDataset sample() {
  TensorDataset set("made up");
  set.add("x", Tensor::of<float>({3, 2}, {0, 1, 10, 11, 20, 21}));
  set.add("y", Tensor::of<std::int32_t>({3}, {7, 8, 9}));
  return set;
}

TEST_CASE("dataset: columns, rows and description") {
  const TensorDataset set = sample();
  CHECK(set.rows() == 3);
  CHECK(set.column("y").at(1) == 8);
  CHECK(set.description() == "made up: 3 rows; x f32(2), y i32()");
  CHECK(TensorDataset("nothing").rows() == 0);
}

TEST_CASE("dataset: slices copy the rows asked for") {
  TensorDataset part("");
  {
    const TensorDataset set = sample();
    part = set.slice(1, 2);
  }
  CHECK(part.source() == "made up");
  CHECK(part.column("x").shape() == Shape{2, 2});
  CHECK(part.column("x").at(0) == 10);
  CHECK(part.column("x").at(3) == 21);
  CHECK(part.column("y").at(1) == 9);
  CHECK(sample().take(1).column("x").at(1) == 1);
  CHECK(sample().take(1).rows() == 1);
  CHECK(sample().slice(3, 0).rows() == 0);
}

TEST_CASE("dataset: refusals") {
  TensorDataset set = sample();
  const auto refused = [](std::string_view text, auto&& action) {
    return refuses(ErrorKind::kUsage, text, action);
  };
  CHECK(refused("z: expected 3 rows, got 4", [&] { set.add("z", Tensor(DType::kF32, {4})); }));
  CHECK(refused("z: expected rows, got a scalar", [&] { set.add("z", Tensor::scalar(1)); }));
  CHECK(refused("x: expected a new name", [&] { set.add("x", Tensor(DType::kF32, {3})); }));
  CHECK(refused("expected a column of (x, y), got 'z'", [&] { set.column("z"); }));
  CHECK(refused("rows within 3, got 2 from 2", [&] { set.slice(2, 2); }));
  for (const auto& [first, count] : {std::pair{-1, 1}, {0, -1}, {4, 0}, {0, 4}}) {
    CHECK(refused("rows within 3", [&] { set.slice(first, count); }));
  }
  const std::int64_t most = INT64_MAX;
  CHECK(refused("rows within 3", [&] { set.slice(1, most); }));
}

}  // namespace
}  // namespace keel::data
