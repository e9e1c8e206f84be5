// Attention: its definition by hand, its random bits word for word, its gradients and refusals.
#include "src/ops/attention.h"

#include <doctest/doctest.h>

#include <cmath>

#include "backends/backends.h"
#include "src/ops/elementwise.h"
#include "src/ops/matmul.h"
#include "src/ops/softmax.h"
#include "tests/support/attention_step.h"
#include "tests/support/checks.h"
#include "tests/support/gradcheck.h"

namespace keel::test {
namespace {

Tensor mask_of(const Shape& shape, std::initializer_list<std::uint8_t> values) {
  return Tensor::of<std::uint8_t>(shape, values);
}

Results run_step(const AttentionStep& step) {
  return run_attention(*make_backend("reference"), step, DType::kF64);
}

Tensor ones(const Shape& shape) {
  Tensor t(DType::kF64, shape);
  for (double& x : t.as<double>()) x = 1;
  return t;
}

// Queries of 0, so that a query spreads its attention evenly over the keys that it sees.
AttentionStep even_step(const Shape& q, Tensor v, const AttentionAttrs& attrs) {
  Tensor k = random_normal(v.shape(), 5);
  return {Tensor(DType::kF64, q), std::move(k), std::move(v), ones(q), attrs};
}

TEST_CASE("attention: a head by hand") {
  // Scores 0 and log 3: probabilities 1/4 and 3/4, sum exp(score) 4.
  AttentionStep step{f64({1, 1, 1}, {std::log(3.0)}), f64({1, 2, 1}, {0, 1}),
                     f64({1, 2, 1}, {4, 8}), f64({1, 1, 1}, {1})};
  const Results results = run_step(step);
  check_close(results.at("y"), f64({1, 1, 1}, {7}), 1e-15);
  check_close(results.at("lse"), f64({1, 1, 1}, {std::log(4.0)}), 1e-15);
  // dS = P (v - y) = -3/4 and 3/4.
  check_close(results.at("dv"), f64({1, 2, 1}, {0.25, 0.75}), 1e-15);
  check_close(results.at("dq"), f64({1, 1, 1}, {0.75}), 1e-15);
  const double dk = 0.75 * std::log(3.0);
  check_close(results.at("dk"), f64({1, 2, 1}, {-dk, dk}), 1e-15);
}

TEST_CASE(
    "attention: a head has its slice of the features, and scale 1 / sqrt(width) unless told") {
  // Two heads of four features; each looks at one of them.
  AttentionStep step{f64({1, 1, 8}, {2 * std::log(3.0), 0, 0, 0, 0, 0, 0, 2 * std::log(7.0)}),
                     f64({1, 2, 8}, {0, 9, 9, 9, 9, 9, 9, 0, 1, 9, 9, 9, 9, 9, 9, 1}),
                     f64({1, 2, 8}, {4, 0, 0, 0, 0, 0, 0, 8, 8, 0, 0, 0, 0, 0, 0, 16}),
                     ones({1, 1, 8}),
                     {.heads = 2}};
  const Results halved = run_step(step);
  check_close(halved.at("y"), f64({1, 1, 8}, {7, 0, 0, 0, 0, 0, 0, 15}), 1e-15);
  check_close(halved.at("lse"), f64({1, 2, 1}, {std::log(4.0), std::log(8.0)}), 1e-15);
  step.attrs.scale = -0.5;
  const Results negative = run_step(step);
  check_close(negative.at("y"), f64({1, 1, 8}, {5, 0, 0, 0, 0, 0, 0, 9}), 1e-15);
}

TEST_CASE("attention: padding keys have no probability") {
  AttentionStep step = even_step({2, 1, 1}, f64({2, 3, 1}, {1, 2, 4, 8, 16, 32}), {});
  step.key_mask = mask_of({2, 3}, {1, 0, 1, 0, 0, 7});
  const Results results = run_step(step);
  check_close(results.at("y"), f64({2, 1, 1}, {2.5, 32}), 1e-15);
  check_close(results.at("lse"), f64({2, 1, 1}, {std::log(2.0), 0}), 1e-15);
  check_close(results.at("dv"), f64({2, 3, 1}, {0.5, 0, 0.5, 0, 0, 1}), 1e-15);
}

TEST_CASE("attention: the last query sees all keys when causal") {
  const AttentionAttrs causal{.causal = true};
  const Results square = run_step(even_step({1, 3, 1}, f64({1, 3, 1}, {3, 6, 12}), causal));
  check_close(square.at("y"), f64({1, 3, 1}, {3, 4.5, 7}), 1e-15);
  const Results wide = run_step(even_step({1, 2, 1}, f64({1, 3, 1}, {3, 6, 12}), causal));
  check_close(wide.at("y"), f64({1, 2, 1}, {4.5, 7}), 1e-15);
  const Results tall = run_step(even_step({1, 3, 1}, f64({1, 2, 1}, {3, 6}), causal));
  check_close(tall.at("y"), f64({1, 3, 1}, {0, 3, 4.5}), 1e-15);
  check_close(tall.at("lse"), f64({1, 1, 3}, {0, 0, std::log(2.0)}), 1e-15);
}

TEST_CASE("attention: a query that sees nothing gives 0 and takes no gradient") {
  for (const bool causal : {false, true}) {
    AttentionStep step = AttentionCase{2, 3, 5, 2, 2, false, causal}.step();
    step.key_mask = mask_of({2, 5}, {0, 0, 0, 0, 0, 1, 1, 1, 1, 1});
    const Results results = run_step(step);
    for (const auto& [name, value] : results) {
      CAPTURE(name);
      const std::int64_t half = value.elements() / 2;
      for (std::int64_t e = 0; e < half; ++e) CHECK(value.at(e) == 0);
      for (std::int64_t e = half; e < 2 * half; ++e) CHECK(value.at(e) != 0);
    }
  }
  const Results empty = run_step(AttentionCase{2, 3, 0, 1, 4}.step());
  check_close(empty.at("y"), Tensor(DType::kF64, {2, 3, 4}), 0);
  check_close(empty.at("dq"), Tensor(DType::kF64, {2, 3, 4}), 0);
}

TEST_CASE("attention: scores of 1e4 do not overflow") {
  AttentionStep step{f64({1, 2, 1}, {1e4, -1e4}), f64({1, 3, 1}, {1, 0, -1}),
                     f64({1, 3, 1}, {1, 2, 3}), ones({1, 2, 1})};
  const Results results = run_step(step);
  check_close(results.at("y"), f64({1, 2, 1}, {1, 3}), 1e-15);
  check_close(results.at("lse"), f64({1, 1, 2}, {1e4, 1e4}), 1e-15);
  check_close(results.at("dv"), f64({1, 3, 1}, {1, 0, 1}), 1e-15);
}

TEST_CASE("attention: is softmax between two products") {
  OpCase composed, fused;
  for (OpCase* c : {&composed, &fused}) {
    c->inputs.push_back(random_normal({2, 3, 4}, 1));
    c->inputs.push_back(random_normal({2, 5, 4}, 2));
    c->inputs.push_back(random_normal({2, 5, 4}, 3));
  }
  composed.build = [](Graph& g, const std::vector<Value>& in) {
    const Value scores = ops::matmul(g, in[0], in[1], {.transpose_b = true});
    return std::vector{ops::matmul(g, ops::softmax(g, ops::scale(g, scores, 0.5)), in[2])};
  };
  fused.build = [](Graph& g, const std::vector<Value>& in) {
    return std::vector{ops::attention(g, {in[0], in[1], in[2]}, {})};
  };
  const Results got = run_reference(fused), expected = run_reference(composed);
  for (const auto& [name, value] : expected) check_close(got.at(name), value);
}

// v is the identity, so that feature j of a head of y is the probability of key j.
AttentionStep probability_step(std::int64_t b, std::int64_t queries, const AttentionAttrs& attrs) {
  const std::int64_t keys = 9, d = attrs.heads * keys;
  Tensor v(DType::kF64, {b, keys, d});
  for (std::int64_t e = 0; e < v.elements(); ++e) {
    v.as<double>()[std::size_t(e)] = e / d % keys == e % d % keys;
  }
  return even_step({b, queries, d}, std::move(v), attrs);
}

TEST_CASE("attention: the probability of a key is dropped by its number in its row, head, query") {
  const AttentionAttrs attrs{.heads = 3, .p = 0.4, .seed = 0x123456789, .stream = 0};
  AttentionStep step = probability_step(2, 5, attrs);
  step.step = 11, step.first_row = 1000;
  const Tensor y = run_step(step).at("y").clone();
  const Philox random(0x123456789, stream_of("attention"), 11);
  for (std::uint64_t e = 0; e < std::uint64_t(y.elements()); ++e) {
    const std::uint64_t j = e % 9, h = e / 9 % 3, i = e / 27 % 5, row = 1000 + e / 135;
    const std::uint64_t element = h << 28 | i << 14 | j;
    const std::uint32_t bits = random.block(row << 32 | element / 4)[element % 4];
    const double keep = (bits >> 8) * 0x1p-24 >= 0.4 ? 1 / 0.6 : 0;
    CAPTURE(e);
    CHECK(y.at(std::int64_t(e)) == doctest::Approx(keep / 9).epsilon(1e-14));
  }
}

TEST_CASE("attention: dropout keeps 1 - p of the probabilities") {
  const double p = 0.3, n = 200 * 9 * 8;
  const Results results = run_step(probability_step(4, 200, {.heads = 2, .p = p}));
  double kept = 0;
  for (double x : results.at("y").as<double>()) kept += x != 0;
  // Five standard deviations of a binomial count.
  CHECK(std::abs(kept - (1 - p) * n) < 5 * std::sqrt(p * (1 - p) * n));
}

TEST_CASE("attention: two of one graph take the streams of their names") {
  Graph g;
  const Value x = g.input("x", {DType::kF32, {2, 3, 4}}), n = g.input("n", {DType::kI32, {}});
  const auto stream = [&](double p) {
    const Value y = ops::attention(g, {x, x, x, {}, n, n}, {.p = p});
    return g.node(y).attrs.as<AttentionAttrs>().stream;
  };
  CHECK(stream(0.5) == stream_of("attention"));
  const auto scope = g.scope("block");
  CHECK(stream(0.5) == stream_of("block/attention"));
  CHECK(stream(0) == 0);
}

void check_gradients(const Shape& q, std::int64_t keys, const AttentionAttrs& attrs, bool masks) {
  CAPTURE(Attrs(attrs).text());
  CAPTURE(masks);
  OpCase c;
  c.inputs.push_back(random_normal(q, 1));
  c.inputs.push_back(random_normal({q[0], keys, q[2]}, 2));
  c.inputs.push_back(random_normal({q[0], keys, q[2]}, 3));
  c.inputs.push_back(random_key_mask(q[0], keys));
  c.inputs.push_back(i32({}, {5}));
  c.build = [=](Graph& g, const std::vector<Value>& in) {
    const Value mask = masks ? in[3] : Value{};
    return std::vector{ops::attention(g, {in[0], in[1], in[2], mask, in[4], in[4]}, attrs)};
  };
  gradcheck(c);
}

TEST_CASE("attention: gradients") {
  for (const auto& [tq, tk] : {std::pair{3, 3}, {2, 4}, {4, 2}, {1, 1}}) {
    for (const bool causal : {false, true}) {
      for (const double p : {0.0, 0.4}) {
        for (const bool masks : {false, true}) {
          const AttentionAttrs attrs{.heads = 2, .causal = causal, .p = p, .seed = 3};
          check_gradients({2, tq, 4}, tk, attrs, masks);
        }
      }
    }
  }
  check_gradients({1, 3, 3}, 4, {.scale = -1.5}, false);
}

}  // namespace
}  // namespace keel::test
