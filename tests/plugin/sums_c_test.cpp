// keel/norm.h: a sum and a norm as one op have the bits of the two ops one after the other.
#include <doctest/doctest.h>

#include <thread>

#include "tests/plugin/c_plan.h"

namespace keel::test::sums_c {
namespace {

struct NormCase {
  std::string name, attributes;
};
const NormCase kNorms[] = {{"layer_norm", "eps=1e-06"},
                           {"layer_norm", "axes=2 unbiased=true"},
                           {"rms_norm", ""},
                           {"rms_norm", "offset=1 eps=1e-06"}};

// The sizes of a sum and its norm; `dtype` is that of x.
struct SumCase {
  NormCase norm;
  DType dtype;
  Shape x, row;

  DType beside_x() const { return dtype == DType::kBF16 ? DType::kF32 : dtype; }
  Tensor like_x(std::uint32_t stream) const { return drawn(x, stream).to(dtype); }
  Tensor like_gain(std::uint32_t stream) const { return drawn(row, stream).to(beside_x()); }
  std::string name(const std::string& before, const std::string& after = "") const {
    return before + norm.name + after;
  }
};

SumCase sum_case(const NormCase& norm, DType dtype, const Shape& x) {
  const bool has_two_axes = norm.attributes.find("axes=2") != std::string::npos;
  return {norm, dtype, x, has_two_axes ? Shape{x[1], x[2]} : Shape{x[2]}};
}

Asked asked(const std::string& op, const std::string& attributes,
            const std::vector<Tensor>& inputs) {
  Asked of{op, attributes, {}, kHost};
  for (const Tensor& input : inputs) of.inputs.push_back(input.type());
  return of;
}

std::vector<Tensor> run_op(const std::string& op, const std::string& attributes,
                           const std::vector<Tensor>& inputs) {
  return run_once(asked(op, attributes, inputs), inputs);
}

Tensor no_tensor() { return Tensor(TensorType{DType::kF32, Shape{0}}); }

// a + b, rounded to their type. The sum of two float32 numbers in double, rounded again, is their
// sum in float32.
Tensor added(const Tensor& a, const Tensor& b) {
  const Tensor p = a.to(DType::kF64), q = b.to(DType::kF64);
  Tensor wide(DType::kF64, a.shape());
  for (std::size_t i = 0; i < wide.as<double>().size(); ++i) {
    wide.as<double>()[i] = p.as<double>()[i] + q.as<double>()[i];
  }
  return a.dtype() == DType::kBF16 ? wide.to(DType::kF32).to(DType::kBF16) : wide.to(a.dtype());
}

std::vector<Tensor> forward_inputs(const SumCase& c) {
  return list_of(c.like_x(1), c.like_x(2), c.like_gain(3), c.like_gain(4));
}

// Forward inputs without the residual, of the sum.
std::vector<Tensor> norm_inputs(const std::vector<Tensor>& given) {
  return list_of(added(given[0], given[1]), given[2].clone(), given[3].clone());
}

void check_forward(const SumCase& c) {
  const std::vector<Tensor> given = forward_inputs(c), of_norm = norm_inputs(given);
  std::vector<Tensor> expected = run_op(c.norm.name, c.norm.attributes, of_norm);
  expected.push_back(of_norm[0].clone());
  CHECK(same_bytes(run_op(c.name("add_"), c.norm.attributes, given), expected));
}

void check_backward(const SumCase& c, bool has_dsum) {
  const std::vector<Tensor> of_norm = norm_inputs(forward_inputs(c));
  const std::vector<Tensor> outputs = run_op(c.norm.name, c.norm.attributes, of_norm);
  std::vector<Tensor> given = list_of(of_norm[0].clone(), of_norm[1].clone());
  for (std::size_t j = 1; j < outputs.size(); ++j) given.push_back(outputs[j].clone());
  given.push_back(c.like_x(5));
  const std::string attributes =
      c.norm.attributes + (c.norm.attributes.empty() ? "" : " ") + "wants_dbias=true";
  std::vector<Tensor> expected = run_op(c.name("", "_backward"), attributes, given);
  const Tensor dsum = c.like_x(6);
  if (has_dsum) expected[0] = added(expected[0], dsum);
  given.push_back(has_dsum ? dsum.clone() : no_tensor());
  CHECK(same_bytes(run_op(c.name("add_", "_backward"), attributes, given), expected));
}

void check_bits(const SumCase& c) {
  CAPTURE(c.norm.name);
  CAPTURE(c.norm.attributes);
  CAPTURE(name_of(c.dtype));
  CAPTURE(c.x.text());
  check_forward(c);
  for (const bool has_dsum : {true, false}) check_backward(c, has_dsum);
}

TEST_CASE("norm.h: a sum with its norm has the bits of the two ops") {
  for (const NormCase& norm : kNorms) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      for (const std::int64_t width : {1, 7, 64, 517}) {
        check_bits(sum_case(norm, dtype, {3, 2, width}));
      }
    }
    check_bits(sum_case(norm, DType::kF64, {3, 2, 37}));
    check_bits(sum_case(norm, DType::kF32, {1, 1, 64}));
    check_forward(sum_case(norm, DType::kF32, {0, 2, 64}));
  }
}

TEST_CASE("norm.h: a sum with its norm has the bits of the two ops in blocks and wide rows") {
  for (const NormCase& norm : {kNorms[0], kNorms[3]}) {
    check_bits(sum_case(norm, DType::kF32, {2, 300, 64}));
    check_bits(sum_case(norm, DType::kF32, {1, 2, 9000}));
    check_bits(sum_case(norm, DType::kBF16, {1, 2, 9000}));
    check_bits(
        sum_case(norm, DType::kF32, {1, 2, 17000}));  // columns that are summed by themselves
  }
}

// Threads that each take some of the blocks.
void share(void*, std::int64_t blocks, void (*work)(void*, std::int64_t, std::int64_t),
           void* argument) {
  std::vector<std::thread> threads;
  for (std::int64_t t = 0; t < 3; ++t) {
    threads.emplace_back(work, argument, blocks * t / 3, blocks * (t + 1) / 3);
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_CASE("norm.h: a sum with its norm has the same bits on a caller's threads") {
  const SumCase c = sum_case(kNorms[0], DType::kF32, {40, 20, 100});
  const std::vector<Tensor> given = forward_inputs(c);
  const Asked op = asked("add_layer_norm", c.norm.attributes, given);
  const std::vector<Tensor> alone = run_once(op, given);
  const CPlan plan = prepared(op);
  std::vector<DeviceArray> arrays;
  std::vector<const void*> from;
  std::vector<void*> to;
  for (const Tensor& input : given) from.push_back(input.data());
  for (const Tensor& output : alone) {
    arrays.emplace_back(kHost, output.bytes());
    to.push_back(arrays.back().address());
  }
  const keel_executor executor{share, nullptr, 3, nullptr};
  REQUIRE(keel_plan_run(plan.get(), from.data(), to.data(), nullptr, &executor) == KEEL_OK);
  for (std::size_t j = 0; j < alone.size(); ++j) {
    CHECK(same_bytes(arrays[j].read(alone[j].type()), alone[j]));
  }
}

std::string refusal(const std::string& op, const std::vector<TensorType>& inputs,
                    const keel_device& device = kHost) {
  CPlan plan;
  return prepare({op, "", inputs, device}, plan) == KEEL_OK ? "" : keel_error();
}

const TensorType kX{DType::kF32, {7, 37}}, kRow{DType::kF32, {37}}, kRows{DType::kF32, {7}},
    kNone{DType::kF32, {0}};

TEST_CASE("norm.h: a sum refuses what does not fit, with words") {
  CHECK(refusal("add_layer_norm", {kX, kRow}) ==
        "[add_layer_norm] residual: expected f32(7, 37), as x is, got f32(37)");
  CHECK(refusal("add_layer_norm", {kX}) ==
        "[add_layer_norm] residual: expected an array, got none");
  CHECK(refusal("add_rms_norm", {kNone, kX}) == "[add_rms_norm] x: expected an array, got none");
  CHECK(refusal("add_rms_norm", {kX, {DType::kBF16, kX.shape}}) ==
        "[add_rms_norm] residual: expected f32(7, 37), as x is, got bf16(7, 37)");
  CHECK(refusal("add_rms_norm", {kX, kX, kRows}).starts_with("[rms_norm] gain: expected (37)"));
  CHECK(refusal("add_rms_norm_backward", {kX, kNone, kRows, kX, kRow}) ==
        "[add_rms_norm_backward] dsum: expected f32(7, 37), as sum is, got f32(37)");
  CHECK(refusal("add_rms_norm_backward", {kX, kNone, kRows, kX, kX, kX}) ==
        "[add_rms_norm_backward] expected at most 5 inputs, got 6");
}

TEST_CASE("norm.h on a GPU: a sum with its norm is refused") {
  CHECK(refusal("add_layer_norm", {kX, kX}, kFirstGpu) ==
        "[add_layer_norm] expected the CPU: on a GPU, run the sum and layer_norm one after the "
        "other");
}

}  // namespace
}  // namespace keel::test::sums_c
