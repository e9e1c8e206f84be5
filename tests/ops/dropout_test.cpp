// Dropout: the mask is the contract of src/ops/dropout.h, word for word.
#include "src/ops/dropout.h"

#include <doctest/doctest.h>

#include <cmath>

#include "src/ops/elementwise.h"
#include "tests/support/checks.h"
#include "tests/support/gradcheck.h"

namespace keel::test {
namespace {

Tensor row_of_ones(std::int64_t n) {
  Tensor t(DType::kF64, {n});
  for (double& x : t.as<double>()) x = 1;
  return t;
}

OpCase case_of(Tensor x, std::int32_t step, const DropoutAttrs& attrs, std::int32_t first_row = 0) {
  OpCase c;
  c.inputs.push_back(std::move(x));
  c.inputs.push_back(i32({}, {step}));
  c.inputs.push_back(i32({}, {first_row}));
  c.build = [attrs](Graph& g, const std::vector<Value>& v) {
    return std::vector{g.add(kDropout, v, attrs)};
  };
  return c;
}

// Every element by the words of the contract; a row holds x.elements() / rows.
void check_contract(const OpCase& c, const DropoutAttrs& attrs, std::int64_t rows) {
  const Tensor& x = c.inputs[0];
  const Results results = run_reference(c);
  const Philox random(std::uint64_t(attrs.seed), std::uint32_t(attrs.stream),
                      std::uint32_t(c.inputs[1].at(0)));
  const Tensor weights = random_normal(x.shape(), 900);  // what run_case differentiates
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    CAPTURE(i);
    const std::int64_t width = x.elements() / rows, e = i % width;
    const std::uint64_t row = std::uint64_t(c.inputs[2].at(0)) + std::uint64_t(i / width);
    const Philox4 words = random.block(row << 32 | std::uint64_t(e / 4));
    const bool is_kept = (words[std::size_t(e % 4)] >> 8) * 0x1p-24 >= attrs.p;
    const double factor = is_kept ? 1 / (1 - attrs.p) : 0;
    CHECK(results.at("y0").at(i) == doctest::Approx(factor * x.at(i)).epsilon(1e-14));
    CHECK(results.at("d0").at(i) == doctest::Approx(factor * weights.at(i)).epsilon(1e-14));
  }
}

TEST_CASE("dropout: element e of a row is kept when word e % 4 of its block e / 4 is >= p") {
  const DropoutAttrs rows[] = {{0.5, 1, 2}, {0.1, -1, 0xFFFFFFFFll}, {0.9, 0x123456789ll, 7}};
  for (const DropoutAttrs& attrs : rows) {
    CAPTURE(Attrs(attrs).text());
    for (std::int32_t step : {0, 1, 1000000}) {
      check_contract(case_of(random_normal({5, 7}, 1), step, attrs), attrs, 5);
      check_contract(case_of(random_normal({2, 3, 4}, 1), step, attrs, 48), attrs, 2);
    }
    check_contract(case_of(random_normal({6}, 1), 3, attrs, 0x7FFFFFFF), attrs, 6);
    check_contract(case_of(random_normal({}, 1), 3, attrs, 5), attrs, 1);
  }
}

TEST_CASE("dropout: keeps 1 - p of the elements and the mean") {
  constexpr std::int64_t kElements = 100000;
  for (double p : {0.1, 0.5, 0.8}) {
    CAPTURE(p);
    OpCase c = case_of(row_of_ones(kElements), 3, {p, 42, 5});
    c.gradients = false;
    const Tensor y = run_reference(c).at("y0").clone();
    double kept = 0;
    for (double v : y.as<double>()) kept += v != 0;
    // Five standard deviations of a binomial count.
    CHECK(std::abs(kept - (1 - p) * kElements) < 5 * std::sqrt(p * (1 - p) * kElements));
  }
}

double agreement(const Tensor& a, const Tensor& b) {
  double same = 0;
  for (std::int64_t e = 0; e < a.elements(); ++e) same += (a.at(e) != 0) == (b.at(e) != 0);
  return same / double(a.elements());
}

TEST_CASE("dropout: another update, seed or stream draws an independent mask") {
  const auto mask = [](std::int32_t step, const DropoutAttrs& attrs) {
    OpCase c = case_of(row_of_ones(10000), step, attrs);
    c.gradients = false;
    return run_reference(c).at("y0").clone();
  };
  const Tensor base = mask(0, {0.5, 1, 1});
  CHECK(agreement(base, mask(0, {0.5, 1, 1})) == 1);
  const Tensor others[] = {mask(1, {0.5, 1, 1}), mask(0, {0.5, 2, 1}), mask(0, {0.5, 1, 2})};
  for (const Tensor& other : others) {
    CHECK(std::abs(agreement(base, other) - 0.5) < 0.025);  // five standard deviations
  }
}

TEST_CASE("dropout: two dropouts of one graph take the streams of their names") {
  Graph g;
  const Value x = g.input("x", {DType::kF32, {4}});
  const RandomKey key{g.input("step", {DType::kI32, {}}), g.input("first_row", {DType::kI32, {}})};
  const Value a = ops::dropout(g, x, key, 0.5, 1);
  const auto scope = g.scope("block");
  const Value b = ops::dropout(g, a, key, 0.5, 1);
  CHECK(g.node(a).attrs.as<DropoutAttrs>().stream == stream_of("dropout"));
  CHECK(g.node(b).attrs.as<DropoutAttrs>().stream == stream_of("block/dropout"));
  CHECK(g.node(b).name == "block/dropout");
  CHECK(ops::dropout(g, x, key, 0, 1) == x);
}

TEST_CASE("dropout: gradients") { gradcheck(case_of(random_normal({3, 4}, 1), 2, {0.4, 9, 9})); }

TEST_CASE("dropout: refusals") {
  const auto dropout = [](double p) -> Build {
    return [p](Graph& g, const std::vector<Value>& v) {
      return std::vector{ops::dropout(g, v[0], {v[1], v[2]}, p, 1)};
    };
  };
  const TensorType x{DType::kF32, {4}}, i{DType::kI32, {}}, list{DType::kI32, {1}};
  const auto refused = [&](const std::vector<TensorType>& inputs, double p, std::string_view part) {
    check_op_refused(inputs, dropout(p), "dropout", part);
  };
  refused({x, i, i}, 1, "p: expected in [0, 1), got 1");
  refused({x, i, i}, -0.1, "p: expected in [0, 1), got -0.1");
  refused({x, x, i}, 0.5, "step: expected i32, got f32");
  refused({x, i, x}, 0.5, "first_row: expected i32, got f32");
  refused({x, list, i}, 0.5, "step: expected (), got (1)");
  refused({x, i, list}, 0.5, "first_row: expected (), got (1)");
  refused({i, i, i}, 0.5, "x: expected a floating type, got i32");
  refused({{DType::kF32, {1, 1ll << 34}}, i, i}, 0.5,
          "x: expected fewer than 17179869184 elements a row, got 17179869184");
}

}  // namespace
}  // namespace keel::test
