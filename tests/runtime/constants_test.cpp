// The block of a program's constants.
#include "src/runtime/constants.h"

#include <doctest/doctest.h>

#include "backends/null/backend.h"
#include "backends/reference/backend.h"
#include "tests/support/checks.h"

namespace keel::test {
namespace {

Tensor read(const Constants& constants, int node, const TensorType& type) {
  Tensor value(type);
  constants.memory()->download(constants.offset(node), value.data(), value.bytes());
  return value;
}

TEST_CASE("constants: each is where it should be, in the storage type") {
  Graph g;
  const Value half = g.constant(0.5),
              many = g.constant(f64(
                  {20}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}));
  g.input("x", {DType::kF32, {3}});
  const Value whole = g.constant(i32({2}, {-1, 7})), again = g.constant(0.5);
  reference::ReferenceBackend backend;
  const Constants constants(backend, g);
  CHECK(read(constants, half.node, {DType::kF64, {}}).at(0) == 0.5);
  CHECK(read(constants, many.node, {DType::kF64, {20}}).at(19) == 20);
  CHECK(read(constants, whole.node, {DType::kI32, {2}}).at(0) == -1);
  CHECK(read(constants, whole.node, {DType::kI32, {2}}).at(1) == 7);
  for (Value v : {half, many, whole, again}) {
    CHECK(constants.offset(v.node) % std::int64_t(kAlignment) == 0);
  }
}

TEST_CASE("constants: those of equal bytes are stored once") {
  Graph g;
  const Value one = g.constant(1.0), two = g.constant(2.0), other_one = g.constant(1.0);
  const Value ones = g.constant(Tensor::of<float>({2}, {1, 1}));
  const Value row = g.constant(Tensor::of<float>({1, 2}, {1, 1}));
  null::NullBackend backend;
  const Constants constants(backend, g);
  CHECK(constants.offset(one.node) == constants.offset(other_one.node));
  CHECK(constants.offset(ones.node) == constants.offset(row.node));
  CHECK(constants.offset(one.node) != constants.offset(two.node));
  CHECK(constants.offset(one.node) != constants.offset(ones.node));  // other bytes
  CHECK(constants.memory()->bytes() == 3 * std::int64_t(kAlignment));
}

TEST_CASE("constants: a graph without any needs no memory") {
  Graph g;
  g.input("x", {DType::kF32, {3}});
  null::NullBackend backend;
  CHECK(Constants(backend, g).memory() == nullptr);
}

}  // namespace
}  // namespace keel::test
