// Statistics of columns: values by hand, merging, the gradient of norms that are given them, and
// refusals.
#include "src/ops/column_moments.h"

#include <doctest/doctest.h>

#include "backends/backends.h"
#include "src/autodiff/gradient.h"
#include "src/ops/norm/batch_norm.h"
#include "src/ops/norm/power_norm.h"
#include "src/ops/reduce.h"
#include "tests/support/checks.h"
#include "tests/support/column_norms.h"
#include "tests/support/gradcheck.h"
#include "tests/support/tested_backends.h"

namespace keel::test {
namespace {

Tensor mask_of(std::initializer_list<std::uint8_t> values) {
  return Tensor::of<std::uint8_t>({std::int64_t(values.size())}, values);
}

// Statistics of the columns (1, 3, 8) and (2, 2, 5) under a mask, on every backend.
void check_statistics(const Build& build, const Tensor& mask, const Tensor& expected) {
  OpCase c;
  c.inputs.push_back(f64({3, 2}, {1, 2, 3, 2, 8, 5}));
  c.inputs.push_back(mask.clone());
  c.gradients = false;
  c.build = build;
  for (const std::string& name : tested_backends()) {
    CAPTURE(name);
    check_close(run_case(*make_backend(name), c, DType::kF32).at("y0"), expected);
  }
}

Build moments() {
  return [](Graph& g, const std::vector<Value>& in) {
    return std::vector{ops::column_moments(g, in[0], in[1])};
  };
}
Build squares(bool all_rows) {
  return [all_rows](Graph& g, const std::vector<Value>& in) {
    return std::vector{ops::column_squares(g, in[0], in[1], {all_rows})};
  };
}

TEST_CASE("column_moments: K, B, the mean and the squares about it") {
  check_statistics(moments(), mask_of({1, 1, 0}), f64({4, 2}, {2, 2, 3, 3, 2, 2, 2, 0}));
  check_statistics(moments(), mask_of({1, 1, 1}), f64({4, 2}, {3, 3, 3, 3, 4, 3, 26, 6}));
  check_statistics(moments(), mask_of({0, 0, 0}), f64({4, 2}, {0, 0, 3, 3, 0, 0, 0, 0}));
}

TEST_CASE("column_squares: K, B, and the squares of the kept rows and of all") {
  const Tensor some = mask_of({1, 1, 0});
  check_statistics(squares(false), some, f64({3, 2}, {2, 2, 3, 3, 10, 8}));
  check_statistics(squares(true), some, f64({4, 2}, {2, 2, 3, 3, 10, 8, 74, 33}));
  check_statistics(squares(false), mask_of({0, 0, 0}), f64({3, 2}, {0, 0, 3, 3, 0, 0}));
}

TEST_CASE("column_moments: images have h * w elements a row") {
  OpCase c;
  c.inputs.push_back(f64({2, 1, 1, 2}, {1, 3, 5, 7}));
  c.gradients = false;
  c.build = [](Graph& g, const std::vector<Value>& in) {
    return std::vector{ops::column_moments(g, in[0], {}), ops::column_squares(g, in[0], {})};
  };
  for (const std::string& name : tested_backends()) {
    const Results got = run_case(*make_backend(name), c, DType::kF32);
    check_close(got.at("y0"), f64({4, 1}, {4, 4, 4, 20}));
    check_close(got.at("y1"), f64({3, 1}, {4, 4, 84}));
  }
}

// Means 1 and 4 of 2 and 1 elements: together 2, and 1.5 + 0 + 9 * 2 / 3.
TEST_CASE("merge_moments: a shard without elements changes B alone; merge_sums adds") {
  for (const std::string& name : tested_backends()) {
    Graph g;
    Feeds feeds;
    feeds["parts"] = f64({4, 4, 1}, {0, 3, 0, 0, 2, 2, 1, 1.5, 0, 5, 0, 0, 1, 4, 4, 0});
    const Value parts = g.input("parts", feeds.at("parts").type());
    g.mark_output("moments", ops::merge_moments(g, parts));
    g.mark_output("sums", ops::merge_sums(g, parts));
    const Results got = run_graph(*make_backend(name), g, feeds);
    check_close(got.at("moments"), f64({4, 1}, {3, 14, 2, 7.5}));
    check_close(got.at("sums"), f64({4, 1}, {3, 14, 5, 1.5}));
  }
}

// Exact gradients hold by way of the statistics, too: differences are taken through both nodes.
TEST_CASE("column_moments: the backward of a norm that is given them is the derivative") {
  for (const ColumnNorm& norm : column_norms()) {
    const bool is_exact = norm.name.ends_with("batch_norm") || norm.name == "pn_v";
    if (!is_exact) continue;
    CAPTURE(norm.name);
    for (ColumnMask kind : {ColumnMask::kNone, ColumnMask::kSome}) {
      const ColumnBatch batch = column_batch({7, 3}, kind);
      OpCase c;
      c.inputs.push_back(batch.x.to(DType::kF64));
      for (std::uint32_t i : {2, 3}) c.inputs.push_back(random_normal(Shape{3}, i, 1));
      c.build = [&](Graph& g, const std::vector<Value>& in) {
        const auto state = [&](std::uint32_t stream) {
          return g.constant(random_normal(Shape{3}, stream, 2, 0.1).to(g.type(in[0]).dtype));
        };
        ColumnOperands o{in[0], {in[1], in[2]}, state(4), state(5), {}, {}, {}, {}};
        if (!batch.mask.empty()) o.mask = g.constant(Tensor::of<std::uint8_t>({7}, batch.mask));
        return std::vector{norm.build(g, o, true)};
      };
      gradcheck(c);
    }
  }
}

TEST_CASE("column_moments: statistics of other rows are refused by the backward") {
  Graph g;
  const Value x = g.input("x", {DType::kF32, {4, 3}}), other = g.input("o", {DType::kF32, {4, 3}});
  const Value state = g.constant(Tensor(DType::kF32, {3}));
  const Value moments = ops::column_moments(g, other, {});
  const Value y = ops::batch_norm(g, x, {}, {state, state, {}, moments}, {});
  const Value loss = ops::sum(g, y);
  check_refused([&] { gradient(g, loss, std::vector{x}); },
                "[batch_norm] statistics: expected column_moments of its own x and mask, got "
                "column_moments; the gradient by way of merged ones needs merged gradient sums");
}

TEST_CASE("column_moments: refusals") {
  using Types = std::vector<TensorType>;
  const auto refused = [](const Types& types, const Build& build, std::string_view op,
                          std::string_view message) {
    check_op_refused(types, build, op, message);
  };
  const TensorType x{DType::kF32, {4, 3}}, mask{DType::kU8, {4}};
  refused({{DType::kF32, {4}}, mask}, moments(), "column_moments",
          "x: expected (rows, channels) or (n, channels, h, w), got (4)");
  refused({x, {DType::kU8, {3}}}, squares(false), "column_squares", "mask: expected (4), got (3)");
  const Build merge = [](Graph& g, const std::vector<Value>& in) {
    return std::vector{ops::merge_moments(g, in[0])};
  };
  refused({{DType::kF32, {2, 4, 3}}}, merge, "merge_moments", "parts: expected f64, got f32");
  refused({{DType::kF64, {4, 3}}}, merge, "merge_moments",
          "parts: expected (shards, kinds, channels), got (4, 3)");
  refused({{DType::kF64, {0, 4, 3}}}, merge, "merge_moments",
          "parts: expected at least one shard, got (0, 4, 3)");
  refused({{DType::kF64, {2, 3, 3}}}, merge, "merge_moments",
          "parts: expected (shards, 4, channels), got (2, 3, 3)");
}

TEST_CASE("column_moments: a norm refuses statistics of another form") {
  using Types = std::vector<TensorType>;
  const TensorType x{DType::kF32, {4, 3}}, state{DType::kF32, {3}};
  const auto batch = [](const BatchNormAttrs& attrs) -> Build {
    return [attrs](Graph& g, const std::vector<Value>& in) {
      return std::vector{ops::batch_norm(g, in[0], {}, {in[1], in[1], {}, in[2]}, attrs)};
    };
  };
  const auto power = [](const PowerNormAttrs& attrs) -> Build {
    return [attrs](Graph& g, const std::vector<Value>& in) {
      return std::vector{ops::power_norm(g, in[0], {}, {in[1], in[1], {}, {}, in[2]}, attrs)};
    };
  };
  const auto given = [&](DType type, const Shape& shape) { return Types{x, state, {type, shape}}; };
  check_op_refused(given(DType::kF32, {4, 3}), batch({}), "batch_norm",
                   "moments: expected f64, got f32");
  check_op_refused(given(DType::kF64, {4, 2}), batch({}), "batch_norm",
                   "moments: expected (4, 3), got (4, 2)");
  check_op_refused(given(DType::kF64, {4, 3}), batch({.training = false}), "batch_norm",
                   "moments: expected none in evaluation, got (4, 3)");
  check_op_refused(given(DType::kF64, {3, 3}), power({.pad_stats = true}), "power_norm",
                   "squares: expected (4, 3), got (3, 3)");
  check_op_refused(given(DType::kF64, {3, 3}), power({.groups = 3}), "power_norm",
                   "squares: expected none with groups, got (3, 3)");
}

TEST_CASE("column_moments: x in float64 is for the reference alone") {
  Graph g;
  const Value x = g.input("x", {DType::kF64, {4, 3}});
  g.mark_output("y", ops::column_moments(g, x, {}));
  Feeds feeds;
  feeds["x"] = Tensor(DType::kF64, {4, 3});
  for (const std::string& name : tested_backends()) {
    const auto run = [&] { run_graph(*make_backend(name), g, feeds); };
    if (name == "reference") {
      run();
    } else {
      CHECK_THROWS_AS(run(), Error);
    }
  }
}

}  // namespace
}  // namespace keel::test
