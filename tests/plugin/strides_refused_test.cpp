// keel/norm.h: strides that an op does not take, and outputs that overlap, are refused.
#include <doctest/doctest.h>

#include "tests/plugin/c_plan.h"

namespace keel::test::strides_refused {
namespace {

using Strides = std::vector<std::int64_t>;

const TensorType kX{DType::kF32, {3, 4}}, kRow{DType::kF32, {4}};

// What a layer norm of (3, 4) with a gain says of the strides of x, gain and y, whose memory is at
// the offsets of one array.
struct Place {
  std::int64_t offset;
  Strides strides;
};
std::string refusal(const Place& x, const Place& y, const Strides& of_gain = {1}) {
  const CPlan plan = prepared({"layer_norm", "", {kX, kRow}, kHost});
  std::vector<float> memory(200, 1.0f), gain(8, 1.0f), mean(3, 7.0f), rstd(3, 7.0f);
  const void* inputs[] = {memory.data() + x.offset, gain.data()};
  void* outputs[] = {memory.data() + y.offset, mean.data(), rstd.data()};
  const std::int64_t* of_inputs[] = {x.strides.data(), of_gain.data()};
  const std::int64_t* of_outputs[] = {y.strides.data(), nullptr, nullptr};
  const keel_arrays arrays{inputs, outputs, of_inputs, of_outputs};
  const std::vector<float> before = memory;
  const int status = keel_plan_run_strided(plan.get(), &arrays, nullptr, nullptr);
  if (status == KEEL_OK) return "";
  CHECK(status == KEEL_USAGE);
  CHECK(memory == before);
  CHECK(mean == std::vector<float>(3, 7.0f));
  return keel_error();
}

TEST_CASE("norm.h: strides that an op does not take are refused with words, and nothing written") {
  const Place x{0, {8, 1}}, y{100, {4, 1}};
  CHECK(refusal(x, y) == "");
  CHECK(refusal({0, {1, 3}}, y) ==
        "[layer_norm] x: expected rows of 4 neighbours, got strides (1, 3) of f32(3, 4)");
  CHECK(refusal({0, {4, -1}}, y) ==
        "[layer_norm] x: expected rows of 4 neighbours, got strides (4, -1) of f32(3, 4)");
  CHECK(refusal(x, {100, {5, 2}}) ==
        "[layer_norm] output 0: expected rows of 4 neighbours, got strides (5, 2) of f32(3, 4)");
  CHECK(refusal(x, y, {2}) ==
        "[layer_norm] gain: expected a contiguous array, got strides (2) of f32(4)");
  CHECK(refusal({0, {std::int64_t{1} << 61, 1}}, y) ==
        "[layer_norm] x: expected elements within 2^62 bytes, got strides (2305843009213693952, "
        "1) of f32(3, 4)");
}

TEST_CASE("norm.h: an output that overlaps an array with strides is refused, and nothing written") {
  const std::string self = "[layer_norm] output 0: expected a place for each element, got strides ";
  CHECK(refusal({0, {8, 1}}, {100, {0, 1}}) == self + "(0, 1) of f32(3, 4)");
  CHECK(refusal({0, {8, 1}}, {100, {3, 1}}) == self + "(3, 1) of f32(3, 4)");
  const std::string of_x =
      "[layer_norm] output 0: expected memory of its own, got some of [layer_norm] x";
  CHECK(refusal({0, {8, 1}}, {4, {8, 1}}) == "");  // in the gaps of x
  CHECK(refusal({0, {8, 1}}, {0, {8, 1}}) == of_x);
  CHECK(refusal({0, {8, 1}}, {5, {8, 1}}) == of_x);
  CHECK(refusal({0, {8, 1}}, {19, {4, 1}}) == of_x);
  CHECK(refusal({0, {8, 1}}, {20, {4, 1}}) == "");
  CHECK(refusal({0, {20, 1}}, {4, {5, 1}}) == "");  // between rows, with no common period
  CHECK(refusal({0, {20, 1}}, {7, {5, 1}}) == of_x);
  CHECK(refusal({60, {-8, 1}}, {64, {-8, 1}}) == "");
  CHECK(refusal({60, {-8, 1}}, {47, {8, 1}}) == of_x);
  CHECK(refusal({0, {0, 1}}, {4, {4, 1}}) == "");  // one row three times
  CHECK(refusal({0, {0, 1}}, {3, {4, 1}}) == of_x);
}

bool takes(const Asked& asked, int input, const Strides& strides) {
  return keel_plan_takes_strides(prepared(asked).get(), input, strides.data()) == 1;
}

TEST_CASE("norm.h: a plan says which strides it takes") {
  const Asked norm{"layer_norm", "", {kX, kRow}, kHost};
  CHECK(takes(norm, 0, {4, 1}));
  CHECK(takes(norm, 0, {9, 1}));
  CHECK(takes(norm, 0, {0, 1}));
  CHECK_FALSE(takes(norm, 0, {1, 3}));
  CHECK(takes(norm, 1, {1}));
  CHECK_FALSE(takes(norm, 1, {2}));
  for (const int no_input : {-1, 2, 9}) CHECK_FALSE(takes(norm, no_input, {9, 1}));
  const TensorType wide{DType::kF32, {2, 16385}}, of_double{DType::kF64, {3, 4}};
  CHECK_FALSE(takes({"layer_norm", "", {wide}, kHost}, 0, {20000, 1}));
  CHECK_FALSE(takes({"layer_norm", "", {of_double}, kHost}, 0, {9, 1}));
  CHECK_FALSE(takes({"add_layer_norm", "", {kX, kX}, kHost}, 0, {9, 1}));
  CHECK_FALSE(takes({"batch_norm", "", {kX, kRow, kRow, kRow, kRow}, kHost}, 0, {9, 1}));
  CHECK_FALSE(takes({"seed_norm_backward",
                     "",
                     {kX, kRow, kRow, kRow, {DType::kF32, {3}}, {DType::kF32, {3}}, kX},
                     kHost},
                    0, {9, 1}));
  CHECK(keel_plan_takes_strides(nullptr, 0, nullptr) == 0);
}

TEST_CASE("norm.h on a GPU: arrays with strides are refused") {
  use_emulated_gpus();
  CHECK(takes({"layer_norm", "", {kX}, kFirstGpu}, 0, {4, 1}));
  CHECK_FALSE(takes({"layer_norm", "", {kX}, kFirstGpu}, 0, {8, 1}));
}

}  // namespace
}  // namespace keel::test::strides_refused
