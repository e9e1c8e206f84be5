// Multi-linear attention: its definition by hand, what the mask hides, gradients and refusals.
#include "src/ops/multilinear_attention.h"

#include <doctest/doctest.h>

#include "tests/support/checks.h"
#include "tests/support/gradcheck.h"

namespace keel::test {
namespace {

Build attend(const MultilinearAttrs& attrs) {
  return [attrs](Graph& g, const std::vector<Value>& v) {
    return std::vector{ops::multilinear_attention(g, {v[0], v[1], v[2], v[3], v[4], v[5]}, attrs)};
  };
}

OpCase random_attention(std::int64_t b, const MultilinearAttrs& attrs) {
  constexpr std::int64_t kPositions = 3, kRank = 2, kFeatures = 4;
  OpCase c;
  std::uint32_t stream = 0;
  for (const Shape& shape :
       {Shape{b, kPositions, kRank}, Shape{b, kPositions, kRank}, Shape{b, kPositions, kRank},
        Shape{kPositions, kRank}, Shape{b, kPositions, kRank},
        Shape{kPositions * kPositions, kFeatures}}) {
    c.inputs.push_back(random_normal(shape, ++stream));
  }
  c.build = attend(attrs);
  return c;
}

TEST_CASE("multilinear_attention: by hand") {
  OpCase c;
  c.inputs.push_back(f64({1, 2, 1}, {1, 2}));    // a
  c.inputs.push_back(f64({1, 2, 1}, {10, 20}));  // c
  c.inputs.push_back(f64({1, 2, 1}, {3, 5}));    // k
  c.inputs.push_back(f64({2, 1}, {0.5, 0.25}));  // p
  c.inputs.push_back(f64({1, 2, 1}, {7, 11}));   // v
  c.inputs.push_back(f64({4, 1}, {1, 10, 100, 1000}));
  c.gradients = false;
  c.build = attend({});
  // H of query 0 is (8, 7.5), of query 1 (16, 15); query 0 meets only the pair (0, 0).
  const double last = 16 * 7 + 10 * 16 * 11 + 100 * 15 * 7 + 1000 * 15 * 11;
  check_close(run_reference(c).at("y0"), f64({1, 2, 1}, {8 * 7, last}));
  c.build = attend({.causal = false});
  const double first = 8 * 7 + 10 * 8 * 11 + 100 * 7.5 * 7 + 1000 * 7.5 * 11;
  check_close(run_reference(c).at("y0"), f64({1, 2, 1}, {first, last}));
}

// y before and after the keys and values of the last position have changed.
std::pair<Tensor, Tensor> around_a_change(const MultilinearAttrs& attrs) {
  OpCase c = random_attention(2, attrs);
  c.gradients = false;
  Tensor before = run_reference(c).at("y0").clone();
  for (const std::size_t input : {2, 4}) {
    for (std::size_t at : {4, 5, 10, 11}) c.inputs[input].as<double>()[at] += 1;
  }
  return {std::move(before), run_reference(c).at("y0").clone()};
}

TEST_CASE("multilinear_attention: without its mask the first positions read the last") {
  for (const bool causal : {true, false}) {
    const auto [before, after] = around_a_change({.causal = causal});
    for (std::int64_t e = 0; e < before.elements(); ++e) {
      const bool is_earlier = e / 4 % 3 < 2;
      CAPTURE(e);
      CHECK((before.at(e) == after.at(e)) == (causal && is_earlier));
    }
  }
}

TEST_CASE("multilinear_attention: gradients") {
  for (const bool causal : {true, false}) {
    for (const std::int64_t b : {1, 2}) {
      CAPTURE(causal);
      gradcheck(random_attention(b, {.causal = causal}), {.max_elements = 0, .skip = {}});
      gradcheck(random_attention(b, {.causal = causal}));
    }
  }
}

TEST_CASE("multilinear_attention: refusals") {
  const auto refuses = [](std::size_t input, const TensorType& type, const char* part) {
    const TensorType three{DType::kF32, {2, 4, 3}};
    std::vector<TensorType> types(6, three);
    types[3].shape = {4, 3}, types[5].shape = {16, 5};
    types[input] = type;
    check_op_refused(types, attend({}), "multilinear_attention", part);
  };
  const DType f32 = DType::kF32;
  refuses(0, {DType::kI32, {2, 4, 3}}, "a: expected a floating type, got i32");
  refuses(0, {f32, {2, 12}}, "a: expected (b, positions >= 1, rank >= 1), got (2, 12)");
  refuses(0, {f32, {2, 0, 3}}, "a: expected (b, positions >= 1, rank >= 1), got (2, 0, 3)");
  refuses(1, {f32, {2, 4, 2}}, "c: expected (2, 4, 3), got (2, 4, 2)");
  refuses(2, {f32, {1, 4, 3}}, "k: expected (2, 4, 3), got (1, 4, 3)");
  refuses(3, {f32, {3, 3}}, "p: expected (4, 3), got (3, 3)");
  refuses(4, {f32, {2, 5, 3}}, "v: expected (2, 4, 3), got (2, 5, 3)");
  refuses(4, {DType::kF64, {2, 4, 3}}, "v: expected f32, got f64");
  refuses(5, {f32, {15, 5}}, "out: expected (16, features >= 1), got (15, 5)");
  refuses(5, {f32, {16, 0}}, "out: expected (16, features >= 1), got (16, 0)");
}

}  // namespace
}  // namespace keel::test
