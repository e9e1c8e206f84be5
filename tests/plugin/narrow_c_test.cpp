// keel/norm.h on arrays of bf16: the numbers of float32, and y and dx rounded once.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/plugin/c_plan.h"

namespace keel::test::narrow_c {
namespace {

struct CCase {
  Asked asked;                      // in float32
  std::vector<std::size_t> narrow;  // the places of x and dy
};

Tensor rounded(const Tensor& value) { return value.to(DType::kBF16); }

// Runs a case in float32, on numbers that bf16 holds, and in bf16.
void check_narrow(CCase c, keel_device device) {
  CAPTURE(c.asked.op);
  c.asked.device = device;
  Asked asked = c.asked;
  std::vector<Tensor> wide, narrow;
  for (std::size_t i = 0; i < asked.inputs.size(); ++i) {
    const bool is_narrow = std::ranges::count(c.narrow, i) > 0;
    const Tensor value = drawn(asked.inputs[i].shape, std::uint32_t(i));
    wide.push_back(is_narrow ? rounded(value).to(DType::kF32) : value.clone());
    narrow.push_back(is_narrow ? rounded(value) : value.clone());
    if (is_narrow) asked.inputs[i].dtype = DType::kBF16;
  }
  std::vector<Tensor> expected = run_once(c.asked, wide);
  if (expected[0].dtype() == DType::kF32) expected[0] = rounded(expected[0]);
  CHECK(same_bytes(run_once(asked, narrow), expected));
}

const TensorType kX{DType::kF32, {7, 37}}, kRow{DType::kF32, {37}}, kRows{DType::kF32, {7}};

std::string refusal(const Asked& asked) {
  CPlan plan;
  return prepare(asked, plan) == KEEL_OK ? "" : keel_error();
}

TEST_CASE("norm.h: x, dy, y and dx in bf16 have the bits of float32") {
  const CCase cases[] = {
      {{"layer_norm", "", {kX, kRow, kRow}, kHost}, {0}},
      {{"layer_norm_backward", "wants_dbias=true", {kX, kRow, kRows, kRows, kX}, kHost}, {0, 4}},
      {{"rms_norm", "", {kX, kRow}, kHost}, {0}},
      {{"batch_norm", "", {kX, kRow, kRow, kRow, kRow}, kHost}, {0}},
      {{"batch_norm_backward", "", {kX, kRow, kRow, kRow, kX}, kHost}, {0, 4}},
      {{"column_moments", "", {kX}, kHost}, {0}}};
  use_emulated_gpus();
  for (const CCase& c : cases) {
    for (const keel_device device : {kHost, kFirstGpu}) check_narrow(c, device);
  }
}

TEST_CASE("norm.h on a GPU: arrays of bf16 begin at a multiple of 8 bytes") {
  use_emulated_gpus();
  const TensorType x{DType::kBF16, {2, 4}};
  const CPlan plan = prepared({"layer_norm", "", {x}, kFirstGpu});
  DeviceArray array{kFirstGpu, 64}, y{kFirstGpu, 64}, mean{kFirstGpu, 64}, rstd{kFirstGpu, 64};
  void* outputs[3] = {y.address(), mean.address(), rstd.address()};
  for (const int bytes : {4, 8}) {
    const void* inputs[1] = {static_cast<std::byte*>(array.address()) + bytes};
    const int status = keel_plan_run(plan.get(), inputs, outputs, nullptr, nullptr);
    CHECK(status == (bytes == 8 ? KEEL_OK : KEEL_USAGE));
  }
}

TEST_CASE("norm.h: bf16 is refused for what is beside x, and for weights") {
  const TensorType x{DType::kBF16, kX.shape}, row{DType::kBF16, kRow.shape};
  CHECK(refusal({"layer_norm", "", {x, row}, kHost}) ==
        "[layer_norm] gain: expected f32, got bf16 (node layer_norm)");
  CHECK(refusal({"layer_norm_backward", "", {x, kRow, kRows, kRows, kX}, kHost}) ==
        "[layer_norm_backward] dy: expected bf16, got f32 (node layer_norm_backward)");
  use_emulated_gpus();
  for (const keel_device device : {kHost, kFirstGpu}) {
    CHECK(refusal({"weight_norm", "", {x, {DType::kBF16, {7}}}, device})
              .starts_with("[weight_norm] v"));
  }
}

}  // namespace
}  // namespace keel::test::narrow_c
