// Relative attention against the judge, within what rounding may add; and what must not change a
// bit of it.
#include "src/ops/relative_attention.h"

#include <cmath>

#include "src/ops/elementwise.h"
#include "tests/backends/kernel_checks.h"

namespace keel::test {
namespace {

struct RelativeCase {
  std::int64_t batch, queries, keys, distances, heads, width;
  std::int64_t window = 0;
  bool fills = false;  // rows with different parts of the memory
  double size = 1;     // of all operands but v
};

void check_relative(std::initializer_list<RelativeCase> cases) {
  for_each_target([&] {
    for (const RelativeCase& of : cases) {
      CaseBuilder d;
      const std::int64_t features = of.heads * of.width;
      const Shape k{of.batch, of.keys, features};
      const auto normal = [&](const Shape& shape) {
        return ops::scale(d.graph, d.normal(shape), of.size);
      };
      ops::RelativeAttentionOperands in{
          normal({of.batch, of.queries, features}), normal(k),          d.normal(k),
          normal({of.distances, features}),         normal({features}), normal({features})};
      if (of.fills) in.filled = d.below({of.batch}, of.keys - of.queries + 1);
      d.differentiate(
          {ops::relative_attention(d.graph, in, {.heads = of.heads, .window = of.window})});
      const std::string sizes = fmt::format("{} {} {} {} {} {}", of.batch, of.queries, of.keys,
                                            of.distances, of.heads, of.width);
      CAPTURE(sizes);
      CAPTURE(of.window);
      check_agrees(d);
    }
  });
}

TEST_CASE("backend relative_attention: heads of every width") {
  check_relative({{2, 3, 5, 5, 2, 1},
                  {1, 6, 9, 9, 3, 3},
                  {2, 17, 18, 18, 2, 4},
                  {1, 20, 33, 33, 2, 15},
                  {2, 16, 16, 16, 4, 32},
                  {1, 20, 35, 35, 1, 33},
                  {1, 34, 40, 40, 2, 64},
                  {1, 18, 27, 27, 1, 65},
                  {1, 19, 34, 34, 1, 128},
                  {1, 9, 21, 21, 1, 129},
                  {2, 10, 19, 19, 1, 256}});
}

TEST_CASE("backend relative_attention: tiles of keys, queries and distances, whole and not") {
  check_relative({{1, 1, 1, 1, 2, 8},
                  {9, 1, 128, 128, 1, 8},
                  {1, 2, 129, 129, 1, 8},
                  {1, 31, 127, 127, 1, 8},
                  {2, 32, 256, 256, 1, 8},
                  {1, 65, 300, 300, 2, 8},
                  {1, 128, 128, 128, 1, 8},
                  {1, 7, 313, 313, 1, 16}});
}

TEST_CASE("backend relative_attention: fewer distances than keys, windows and part of a memory") {
  check_relative({{2, 5, 9, 1, 2, 8},
                  {2, 40, 80, 30, 1, 16},
                  {1, 40, 290, 150, 1, 8},
                  {2, 20, 60, 60, 2, 8, 1},
                  {2, 70, 140, 140, 1, 8, 70},
                  {1, 40, 300, 41, 1, 8, 200},
                  {3, 20, 60, 60, 2, 8, 0, true},
                  {5, 33, 170, 170, 1, 64, 0, true},
                  {4, 33, 170, 20, 1, 16, 100, true},
                  {2, 12, 20, 20, 1, 128, 5, true},
                  {2, 12, 20, 20, 1, 256, 0, true}});
}

// The first tile of keys that a query sees is not the first of all, and what it gives is not added
// to what memory held.
TEST_CASE("backend relative_attention: windows that begin beyond a tile of keys") {
  check_relative({{1, 40, 500, 100, 2, 8, 60},
                  {2, 70, 400, 80, 1, 16, 90, true},
                  {1, 33, 700, 50, 1, 40, 129}});
}

TEST_CASE("backend relative_attention: scores of hundreds") {
  check_relative({{2, 35, 140, 140, 2, 8, 0, true, 8}, {1, 40, 40, 40, 1, 32, 0, false, 5}});
}

// Inputs 0 to 5 are q, k, v, p, u and w; 6 is filled.
OpCase relative_op(std::int64_t batch, std::int64_t queries, std::int64_t keys) {
  const std::int64_t d = 24;
  OpCase c;
  c.inputs.push_back(random_f32({batch, queries, d}, 1));
  c.inputs.push_back(random_f32({batch, keys, d}, 2));
  c.inputs.push_back(random_f32({batch, keys, d}, 3));
  c.inputs.push_back(random_f32({keys, d}, 4));
  c.inputs.push_back(random_f32({d}, 5));
  c.inputs.push_back(random_f32({d}, 6));
  Tensor filled(DType::kI32, {batch});
  for (std::int64_t row = 0; row < batch; ++row) {
    filled.as<std::int32_t>()[std::size_t(row)] = std::int32_t(row * 31 % (keys - queries + 1));
  }
  c.inputs.push_back(std::move(filled));
  c.build = [](Graph& g, const std::vector<Value>& v) {
    return std::vector{
        ops::relative_attention(g, {v[0], v[1], v[2], v[3], v[4], v[5], v[6]}, {.heads = 3})};
  };
  return c;
}

TEST_CASE("backend relative_attention: later keys change no bit of an earlier query") {
  for_each_target([] {
    for (const std::int64_t own : {1, 30, 64}) {
      CAPTURE(own);
      OpCase c = relative_op(2, 70, 140);
      c.gradients = false;
      const Results expected = run_tested(c);
      for (const std::size_t input : {0u, 1u, 2u}) {
        const Shape shape = c.inputs[input].shape();
        const auto values = c.inputs[input].as<double>();
        for (std::int64_t e = 0; e < shape.elements(); ++e) {
          const std::int64_t position = e / shape[2] % shape[1] - (shape[1] - 70);
          if (position >= own) values[std::size_t(e)] = -3 * values[std::size_t(e)] + 1e4;
        }
      }
      const Results got = run_tested(c);
      const Tensor &y = got.at("y0"), &before = expected.at("y0");
      for (std::int64_t e = 0; e < y.elements(); ++e) {
        if (e / 24 % 70 < own) REQUIRE(y.at(e) == before.at(e));
      }
      CHECK(y.at(69 * 24) != before.at(69 * 24));
    }
  });
}

TEST_CASE("backend relative_attention: keys that are not in the memory change no bit") {
  for_each_target([] {
    OpCase c = relative_op(3, 40, 175);
    const Results expected = run_tested(c);
    const auto filled = c.inputs[6].as<std::int32_t>();
    for (const std::size_t input : {1u, 2u}) {
      const auto values = c.inputs[input].as<double>();
      for (std::int64_t e = 0; e < std::ssize(values); ++e) {
        const std::int64_t key = e / 24 % 175, row = e / (24 * 175);
        if (key < 135 - filled[std::size_t(row)])
          values[std::size_t(e)] = input == 1 ? 3e38 : -3e38;
      }
    }
    for (const auto& [name, value] : run_tested(c)) {
      CAPTURE(name);
      CHECK(std::memcmp(value.data(), expected.at(name).data(), std::size_t(value.bytes())) == 0);
    }
  });
}

TEST_CASE("backend relative_attention: a row does not depend on the batch it is in") {
  const OpCase all = relative_op(5, 40, 75);
  const Results expected = run_tested(all);
  for (const std::int64_t row : {0, 3, 4}) {
    OpCase one = relative_op(1, 40, 75);
    for (std::size_t i : {0u, 1u, 2u, 6u}) {
      const std::int64_t bytes = one.inputs[i].bytes();
      std::memcpy(one.inputs[i].data(), all.inputs[i].data() + row * bytes, std::size_t(bytes));
    }
    const Results got = run_tested(one);
    const auto check_bits = [&](const char* name) {
      CAPTURE(name);
      const std::int64_t bytes = got.at(name).bytes();
      CHECK(std::memcmp(got.at(name).data(), expected.at(name).data() + row * bytes,
                        std::size_t(bytes)) == 0);
    };
    check_bits("y0");
    // The weights of the scalar that is differentiated are other ones for another shape.
  }
}

TEST_CASE("backend relative_attention: a batch without rows") {
  const Results got = run_tested(relative_op(0, 3, 5));
  CHECK(got.at("y0").elements() == 0);
  for (std::int64_t e = 0; e < got.at("d3").elements(); ++e) CHECK(got.at("d3").at(e) == 0);
}

}  // namespace
}  // namespace keel::test
