// Tensors: memory, element types and conversions.
#include "src/core/tensor.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "src/core/bf16.h"
#include "tests/support/checks.h"

namespace keel::test {
namespace {

TEST_CASE("tensor: memory is aligned, zero-filled and owned") {
  Tensor a(DType::kF32, {3, 5});
  CHECK(a.bytes() == 60);
  CHECK(reinterpret_cast<std::uintptr_t>(a.data()) % kAlignment == 0);
  for (float x : a.as<float>()) CHECK(x == 0);
  a.as<float>()[7] = 2.5f;
  const Tensor b = a.clone();
  a.as<float>()[7] = 1;
  CHECK(b.at(7) == 2.5);
  CHECK(b.type().text() == "f32(3, 5)");
  CHECK(Tensor().elements() == 1);
  CHECK(Tensor(DType::kU8, {0, 4}).bytes() == 0);
}

TEST_CASE("tensor: values must fit the shape, views must fit the type") {
  check_refused([] { f64({2, 2}, {1, 2, 3}); }, "tensor (2, 2): expected 4 values, got 3");
  Tensor t = f64({2}, {1, 2});
  check_refused([&] { t.as<float>(); }, "tensor: expected f32 elements, got f64");
}

TEST_CASE("tensor: conversions round to nearest and truncate towards 0") {
  const Tensor t = f64({5}, {1.0 + 0x1p-30, -2.75, 3.99, 255, 0});
  const Tensor f = t.to(DType::kF32);
  CHECK(f.dtype() == DType::kF32);
  CHECK(f.as<float>()[0] == 1.0f);
  CHECK(f.at(1) == -2.75);
  const Tensor i = t.to(DType::kI32);
  check_close(i, f64({5}, {1, -2, 3, 255, 0}), 0);
  const Tensor u = i.to(DType::kU8);
  CHECK(u.at(3) == 255);
  check_close(u.to(DType::kF64).to(DType::kI32).to(DType::kF32), u.to(DType::kF32), 0);
  CHECK(f64({1}, {0.1}).to(DType::kF32).at(0) == double(0.1f));
  CHECK(t.to(DType::kF64).at(0) == t.at(0));
}

TEST_CASE("tensor: bf16 is rounded to the nearest, ties to even, from any type") {
  struct Row {
    double from, to;
  };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Row rows[] = {
      {1, 1},
      {1 + 0x1p-8, 1},                                 // a tie, to the even neighbour below
      {1 + 3 * 0x1p-8, 1 + 0x1p-6},                    // a tie, to the even neighbour above
      {1 + 0x1p-8 + 0x1p-40, 1 + 0x1p-7},              // float32 would make it a tie
      {-1 - 0x1p-8 + 0x1p-40, -1},                     // likewise, from the other side
      {3.3895313892515355e38, 3.3895313892515355e38},  // the largest
      {3.4e38, kInfinity},
      {0x1p-133, 0x1p-133},  // the smallest
      {0x1p-135, 0},
      {-kInfinity, -kInfinity},
  };
  for (const Row& row : rows) {
    CAPTURE(row.from);
    CHECK(f64({1}, {row.from}).to(DType::kBF16).at(0) == row.to);
  }
  const Tensor nan = f64({1}, {NAN}).to(DType::kF32).to(DType::kBF16);
  CHECK(std::isnan(nan.at(0)));
  CHECK(i32({2}, {257, -3}).to(DType::kBF16).at(0) == 256);
  CHECK(f64({1}, {-2.75}).to(DType::kBF16).to(DType::kI32).at(0) == -2);
  CHECK(f64({1}, {1}).to(DType::kBF16).as<BF16>()[0].bits() == 0x3f80);
}

#ifndef __SANITIZE_ADDRESS__  // which ends the program on such a size
TEST_CASE("tensor: memory that does not exist is refused with its size") {
  check_refused([] { AlignedBytes(std::int64_t{1} << 60); }, "out of memory: 1152921504606846976",
                "bytes asked for", ErrorKind::kMemory);
}
#endif

TEST_CASE("dtype: names, sizes and kinds") {
  for (DType d : {DType::kF32, DType::kF64, DType::kBF16, DType::kI32, DType::kU8}) {
    CHECK(dtype_from_name(name_of(d)) == d);
  }
  CHECK(name_of(DType::kBF16) == "bf16");
  CHECK(size_of(DType::kBF16) == 2);
  CHECK(size_of(DType::kF64) == 8);
  CHECK(is_floating(DType::kBF16));
  CHECK_FALSE(is_floating(DType::kI32));
  check_refused([] { dtype_from_name("f16"); }, "dtype: expected f32, f64, bf16, i32 or u8",
                "got 'f16'");
}

TEST_CASE("error: its kind is the exit code, and a check formats only when it fails") {
  const Error error(ErrorKind::kBackendMissing, "text");
  CHECK(error.exit_code() == 7);
  CHECK(std::string(error.what()) == "text");
  check(true, ErrorKind::kIo, "{}", 1);
  check_refused([] { check(false, ErrorKind::kIo, "got {}", 1); }, "got 1", "", ErrorKind::kIo);
}

}  // namespace
}  // namespace keel::test
