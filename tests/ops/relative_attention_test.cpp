// Relative attention: its definition by hand and as other ops, gradients, refusals.
#include "src/ops/relative_attention.h"

#include <doctest/doctest.h>

#include <cmath>

#include "src/ops/attention.h"
#include "src/ops/elementwise.h"
#include "src/ops/layout.h"
#include "src/ops/reduce.h"
#include "tests/support/checks.h"
#include "tests/support/gradcheck.h"

namespace keel::test {
namespace {

// The operands q, k, v, p, u, w and, if it is given, filled.
Build relative_build(const RelativeAttentionAttrs& attrs) {
  return [attrs](Graph& g, const std::vector<Value>& v) {
    ops::RelativeAttentionOperands operands{v[0], v[1], v[2], v[3], v[4], v[5]};
    if (v.size() > 6) operands.filled = v[6];
    return std::vector{ops::relative_attention(g, operands, attrs)};
  };
}

struct RelativeCase {
  std::int64_t batch, queries, keys, distances, width;
};
OpCase relative_case(const RelativeCase& s, const RelativeAttentionAttrs& attrs,
                     std::vector<std::int32_t> filled = {}) {
  OpCase c;
  const Shape k{s.batch, s.keys, s.width};
  c.inputs.push_back(random_normal({s.batch, s.queries, s.width}, 1));
  c.inputs.push_back(random_normal(k, 2));
  c.inputs.push_back(random_normal(k, 3));
  c.inputs.push_back(random_normal({s.distances, s.width}, 4));
  c.inputs.push_back(random_normal({s.width}, 5));
  c.inputs.push_back(random_normal({s.width}, 6));
  if (!filled.empty()) {
    Tensor count(DType::kI32, {s.batch});
    std::ranges::copy(filled, count.as<std::int32_t>().begin());
    c.inputs.push_back(std::move(count));
  }
  c.build = relative_build(attrs);
  return c;
}

TEST_CASE("relative_attention: two keys by hand") {
  // One key of memory and the query's own. The memory's key scores (1 + 1) 0 + (1 + 2) log(3) / 3,
  // its distance is 1; the own key scores 0.
  OpCase c;
  const double p = std::log(3.0) / 3;
  for (auto& t : {f64({1, 1, 1}, {1}), f64({1, 2, 1}, {0, 0}), f64({1, 2, 1}, {8, 4}),
                  f64({2, 1}, {0, p}), f64({1}, {1}), f64({1}, {2})}) {
    c.inputs.push_back(t.clone());
  }
  c.build = relative_build({});
  check_close(run_reference(c).at("y0"), f64({1, 1, 1}, {7}), 1e-15);
}

// Values of 1, 10, 100, ... tell from an even mean which keys were seen.
std::vector<double> means_of_seen(const RelativeAttentionAttrs& attrs, std::int32_t filled) {
  OpCase c;
  const std::int64_t queries = 3, keys = 7;
  c.inputs.push_back(Tensor(DType::kF64, {1, queries, 1}));
  c.inputs.push_back(random_normal({1, keys, 1}, 1));
  c.inputs.push_back(f64({1, keys, 1}, {1, 10, 100, 1e3, 1e4, 1e5, 1e6}));
  c.inputs.push_back(random_normal({keys, 1}, 2));
  c.inputs.push_back(Tensor(DType::kF64, {1}));
  c.inputs.push_back(Tensor(DType::kF64, {1}));
  c.inputs.push_back(Tensor::of<std::int32_t>({1}, {filled}));
  c.build = relative_build(attrs);
  const Results results = run_reference(c);
  const auto y = results.at("y0").as<double>();
  return {y.begin(), y.end()};
}

TEST_CASE("relative_attention: the keys that a query sees") {
  const auto check_means = [](const std::vector<double>& got, std::vector<double> expected) {
    for (std::size_t i = 0; i < 3; ++i) CHECK(got[i] == doctest::Approx(expected[i]));
  };
  check_means(means_of_seen({}, 4), {11111 / 5., 111111 / 6., 1111111 / 7.});
  check_means(means_of_seen({}, 1), {11000 / 2., 111000 / 3., 1111000 / 4.});
  check_means(means_of_seen({}, 0), {10000, 110000 / 2., 1110000 / 3.});
  check_means(means_of_seen({.window = 4}, 4), {11110 / 4., 111100 / 4., 1111000 / 4.});
  check_means(means_of_seen({.window = 4}, 1), {11000 / 2., 111000 / 3., 1111000 / 4.});
  check_means(means_of_seen({.window = 1}, 4), {1e4, 1e5, 1e6});
}

// The score by distance of each key as an op of its own: a query at a time, so that no shift is
// needed.
Value key_by_key(Graph& g, const std::vector<Value>& v, const RelativeCase& s) {
  const std::int64_t memory = s.keys - s.queries;
  std::vector<Value> rows;
  for (std::int64_t i = 0; i < s.queries; ++i) {
    const Value q = ops::slice_axis(g, v[0], 1, i, 1);
    Value exps, sum;
    for (std::int64_t j = 0; j <= i + memory; ++j) {
      const std::int64_t r = std::min(i + memory - j, s.distances - 1);
      const Value k = ops::slice_axis(g, v[1], 1, j, 1);
      const Value content = ops::mul(g, ops::add(g, q, v[4]), k);
      const Value distance = ops::mul(g, ops::add(g, q, v[5]), ops::slice_axis(g, v[3], 0, r, 1));
      const Value score = ops::scale(g, ops::sum(g, ops::add(g, content, distance), {2}, true),
                                     1 / std::sqrt(double(s.width)));
      const Value e = ops::exp(g, score);
      const Value term = ops::mul(g, e, ops::slice_axis(g, v[2], 1, j, 1));
      exps = exps.valid() ? ops::add(g, exps, e) : e;
      sum = sum.valid() ? ops::add(g, sum, term) : term;
    }
    rows.push_back(ops::div(g, sum, exps));
  }
  return ops::concat(g, rows, 1);
}

TEST_CASE("relative_attention: is what its formula says, key by key") {
  for (const RelativeCase& s : {RelativeCase{2, 3, 5, 5, 4}, {1, 4, 4, 2, 3}, {2, 1, 4, 3, 2}}) {
    const OpCase fused = relative_case(s, {});
    OpCase plain = relative_case(s, {});
    plain.build = [&](Graph& g, const std::vector<Value>& v) {
      return std::vector{key_by_key(g, v, s)};
    };
    const Results got = run_reference(fused);
    for (const auto& [name, value] : run_reference(plain)) {
      CAPTURE(name);
      check_close(got.at(name), value, 1e-12);
    }
  }
}

TEST_CASE("relative_attention: without distances it is causal attention") {
  OpCase c = relative_case({2, 3, 5, 5, 4}, {.heads = 2});
  c.inputs[3] = Tensor(DType::kF64, {5, 4});
  c.inputs[4] = Tensor(DType::kF64, {4});
  OpCase plain;
  for (int i = 0; i < 3; ++i) plain.inputs.push_back(c.inputs[std::size_t(i)].clone());
  plain.build = [](Graph& g, const std::vector<Value>& v) {
    return std::vector{ops::attention(g, {v[0], v[1], v[2]}, {.heads = 2, .causal = true})};
  };
  const Results got = run_reference(c);
  for (const auto& [name, value] : run_reference(plain)) check_close(got.at(name), value, 1e-12);
}

TEST_CASE("relative_attention: gradients" * doctest::test_suite("slow")) {
  for (const std::int64_t window : {0, 2, 3}) {
    for (const std::int64_t distances : {1, 3, 5}) {
      CAPTURE(window);
      CAPTURE(distances);
      gradcheck(relative_case({2, 3, 5, distances, 4}, {.heads = 2, .window = window}));
      gradcheck(relative_case({2, 3, 5, distances, 4}, {.heads = 2, .window = window}, {0, 1}));
    }
  }
  gradcheck(relative_case({1, 3, 3, 3, 3}, {.scale = -1.5}));
  gradcheck(relative_case({3, 1, 1, 1, 2}, {}));
}

TEST_CASE("relative_attention: a key that no query sees takes no gradient") {
  const Results results = run_reference(relative_case({2, 2, 5, 5, 4}, {}, {0, 2}));
  for (const char* name : {"d1", "d2"}) {
    const Tensor& d = results.at(name);
    for (std::int64_t e = 0; e < d.elements(); ++e) {
      const std::int64_t row = e / 20, key = e / 4 % 5;
      CAPTURE(e);
      CHECK((d.at(e) == 0) == (key < (row == 0 ? 3 : 1)));
    }
  }
}

TEST_CASE("relative_attention: refusals") {
  using Spoil = void (*)(std::vector<TensorType>&, RelativeAttentionAttrs&);
  const std::pair<Spoil, const char*> rows[] = {
      {[](auto& in, auto&) { in[0].dtype = DType::kI32; }, "qk: expected a floating type, got i32"},
      {[](auto& in, auto&) {
         in[0].shape = {3, 8};
       },
       "qk: expected (b, tq, d), got (3, 8)"},
      {[](auto& in, auto&) {
         in[1].shape = {2, 2, 8};
       },
       "qp: expected (2, 3, 8), got (2, 2, 8)"},
      {[](auto& in, auto&) {
         in[2].shape = {2, 2, 8};
       },
       "k: expected (2, 3 or more, 8), got (2, 2, 8)"},
      {[](auto& in, auto&) {
         in[2].shape = {1, 5, 8};
       },
       "k: expected (2, 3 or more, 8), got (1, 5, 8)"},
      {[](auto& in, auto&) {
         in[3].shape = {2, 4, 8};
       },
       "v: expected (2, 5, 8), got (2, 4, 8)"},
      {[](auto& in, auto&) {
         in[4].shape = {6, 8};
       },
       "p: expected (1 to 5, 8), got (6, 8)"},
      {[](auto& in, auto&) {
         in[4].shape = {0, 8};
       },
       "p: expected (1 to 5, 8), got (0, 8)"},
      {[](auto& in, auto&) {
         in[4].shape = {5, 4};
       },
       "p: expected (1 to 5, 8), got (5, 4)"},
      {[](auto& in, auto&) { in[1].dtype = DType::kF64; }, "qp: expected f32, got f64"},
      {[](auto& in, auto&) { in[4].dtype = DType::kF64; }, "p: expected f32, got f64"},
      {[](auto& in, auto&) { in[5].dtype = DType::kF32; }, "filled: expected i32, got f32"},
      {[](auto& in, auto&) { in[5].shape = {3}; }, "filled: expected (2), got (3)"},
      {[](auto&, auto& a) { a.heads = 3; }, "heads: expected a divisor of the 8 features, got 3"},
      {[](auto&, auto& a) { a.heads = 0; }, "heads: expected a divisor of the 8 features, got 0"},
      {[](auto&, auto& a) { a.scale = INFINITY; }, "scale: expected a finite number, got inf"},
      {[](auto&, auto& a) { a.window = -1; }, "window: expected 0 or more, got -1"}};
  for (const auto& [spoil, part] : rows) {
    std::vector<TensorType> in{{DType::kF32, {2, 3, 8}}, {DType::kF32, {2, 3, 8}},
                               {DType::kF32, {2, 5, 8}}, {DType::kF32, {2, 5, 8}},
                               {DType::kF32, {5, 8}},    {DType::kI32, {2}}};
    RelativeAttentionAttrs attrs{.heads = 2};
    spoil(in, attrs);
    const Build build = [&](Graph& g, const std::vector<Value>& v) {
      return std::vector{g.add(kRelativeAttention, v, attrs)};
    };
    check_op_refused(in, build, "relative_attention", part);
  }
}

TEST_CASE("relative_attention: lse has no gradient, and heads have a largest width") {
  OpCase c = relative_case({1, 2, 2, 2, 3}, {});
  c.build = [](Graph& g, const std::vector<Value>& v) {
    const Value y = ops::relative_attention(g, {v[0], v[1], v[2], v[3], v[4], v[5]}, {});
    return std::vector{y.at(RelativeAttentionOutput::kLse)};
  };
  check_refused([&] { run_reference(c); }, "[relative_attention] lse", "got a gradient");
  check_refused(
      [] {
        run_reference(relative_case({1, 2, 2, 2, 257}, {}));
      },
      "[relative_attention] width of a head", "expected at most 256, got 257");
}

}  // namespace
}  // namespace keel::test
