// Cross entropy of products with a table: what it is composed of, adaptive softmax by hand,
// gradients and refusals.
#include "src/ops/linear_cross_entropy.h"

#include <doctest/doctest.h>

#include <cmath>

#include "src/autodiff/gradient.h"
#include "src/ops/elementwise.h"
#include "src/ops/layout.h"
#include "src/ops/loss.h"
#include "src/ops/matmul.h"
#include "src/ops/reduce.h"
#include "src/ops/softmax.h"
#include "tests/support/checks.h"
#include "tests/support/gradcheck.h"

namespace keel::test {
namespace {

constexpr std::int64_t kRows = 5, kWidth = 3, kWords = 9;

// x, table, bias, clusters, their bias, labels.
OpCase linear_case(const LinearLossAttrs& attrs, const std::vector<std::int32_t>& labels) {
  const std::int64_t clusters = std::ssize(attrs.cutoffs);
  OpCase c;
  c.inputs.push_back(random_normal({kRows, kWidth}, 1));
  c.inputs.push_back(random_normal({kWords, kWidth}, 2));
  c.inputs.push_back(random_normal({kWords}, 3));
  c.inputs.push_back(random_normal({std::max<std::int64_t>(clusters, 1), kWidth}, 4));
  c.inputs.push_back(random_normal({std::max<std::int64_t>(clusters, 1)}, 5));
  c.inputs.push_back(Tensor::of<std::int32_t>({kRows}, labels));
  return c;
}

ops::LinearLoss linear_loss_of(Graph& g, const std::vector<Value>& v,
                               const LinearLossAttrs& attrs) {
  ops::LinearLossOperands of{.x = v[0], .table = v[1], .bias = v[2], .labels = v[5]};
  if (!attrs.cutoffs.empty()) of.clusters = v[3], of.cluster_bias = v[4];
  return ops::linear_cross_entropy(g, of, attrs);
}

TEST_CASE("linear_cross_entropy: is a product and a cross entropy") {
  for (const double smoothing : {0.0, 0.3}) {
    const LinearLossAttrs attrs{.label_smoothing = smoothing};
    OpCase c = linear_case(attrs, {0, 8, -1, 3, 3});
    c.inputs.erase(c.inputs.begin() + 3, c.inputs.begin() + 5);
    OpCase composed{std::move(c)}, tiled = linear_case(attrs, {0, 8, -1, 3, 3});
    tiled.inputs.erase(tiled.inputs.begin() + 3, tiled.inputs.begin() + 5);
    composed.build = [=](Graph& g, const std::vector<Value>& v) {
      const Value z = ops::matmul(g, v[0], v[1], {.bias = v[2], .transpose_b = true});
      return std::vector{ops::cross_entropy(g, z, v[3], {.label_smoothing = smoothing}).sum};
    };
    tiled.build = [=](Graph& g, const std::vector<Value>& v) {
      const ops::LinearLossOperands of{.x = v[0], .table = v[1], .bias = v[2], .labels = v[3]};
      return std::vector{ops::linear_cross_entropy(g, of, attrs).sum};
    };
    const Results got = run_reference(tiled), expected = run_reference(composed);
    for (const auto& [name, value] : expected) check_close(got.at(name), value);
  }
}

TEST_CASE("linear_cross_entropy: nll is not smoothed") {
  Results results[2];
  for (const double smoothing : {0.0, 0.5}) {
    OpCase c = linear_case({}, {1, 2, 3, -1, 8});
    c.gradients = false;
    c.build = [=](Graph& g, const std::vector<Value>& v) {
      const ops::LinearLoss loss = linear_loss_of(g, v, {.label_smoothing = smoothing});
      return std::vector{loss.sum, loss.nll};
    };
    results[smoothing > 0] = run_reference(c);
  }
  CHECK(results[0].at("y0").at(0) == results[0].at("y1").at(0));
  CHECK(results[1].at("y1").at(0) == results[0].at("y1").at(0));
  CHECK(results[1].at("y0").at(0) != results[1].at("y1").at(0));
}

// The probabilities of all words of a row, by the definition of adaptive softmax.
std::vector<double> probabilities(const OpCase& c, std::int64_t row, std::int64_t cut) {
  const auto dot = [&](int input, std::int64_t of) {
    double sum = c.inputs[std::size_t(input) + 1].at(of);
    for (std::int64_t f = 0; f < kWidth; ++f) {
      sum += c.inputs[0].at(row * kWidth + f) * c.inputs[std::size_t(input)].at(of * kWidth + f);
    }
    return std::exp(sum);
  };
  // Input 1 is the table and 2 its bias; 3 and 4 are those of the clusters.
  double head = dot(3, 0), tail = 0;
  for (std::int64_t w = 0; w < kWords; ++w) (w < cut ? head : tail) += dot(1, w);
  std::vector<double> p;
  for (std::int64_t w = 0; w < kWords; ++w) {
    p.push_back(w < cut ? dot(1, w) / head : dot(3, 0) / head * dot(1, w) / tail);
  }
  return p;
}

TEST_CASE("linear_cross_entropy: adaptive, the probabilities of all words add up to 1") {
  constexpr std::int64_t kCut = 4;
  for (std::int32_t word = 0; word < kWords; ++word) {
    OpCase c = linear_case({.cutoffs = {kCut}}, {word, -1, -1, -1, -1});
    c.gradients = false;
    c.build = [](Graph& g, const std::vector<Value>& v) {
      return std::vector{linear_loss_of(g, v, {.cutoffs = {kCut}}).nll};
    };
    const std::vector<double> p = probabilities(c, 0, kCut);
    double sum = 0;
    for (double one : p) sum += one;
    CHECK(sum == doctest::Approx(1));
    CHECK(run_reference(c).at("y0").at(0) == doctest::Approx(-std::log(p[std::size_t(word)])));
  }
}

TEST_CASE("linear_cross_entropy: a cluster that no row is in has lse 0 and no gradient") {
  const LinearLossAttrs attrs{.cutoffs = {3, 6}, .label_smoothing = 0.1};
  OpCase c = linear_case(attrs, {0, 7, 2, 8, -1});
  c.build = [=](Graph& g, const std::vector<Value>& v) {
    return std::vector{linear_loss_of(g, v, attrs).sum};
  };
  const Results results = run_reference(c);
  const Tensor& dtable = results.at("d1");
  for (std::int64_t e = 0; e < dtable.elements(); ++e) {
    const std::int64_t word = e / kWidth;
    CHECK((dtable.at(e) == 0) == (word >= 3 && word < 6));
  }
  c.gradients = false;
  c.build = [=](Graph& g, const std::vector<Value>& v) {
    return std::vector{linear_loss_of(g, v, attrs).sum.at(LinearLossOutput::kLse)};
  };
  const Tensor lse = run_reference(c).at("y0").clone();
  // The parts are the head and two clusters; row 4 does not count.
  const std::vector<bool> is_in{true,  true,  true,  true, false, false, false, false,
                                false, false, false, true, false, true,  false};
  for (std::size_t i = 0; i < is_in.size(); ++i) {
    CHECK((lse.at(std::int64_t(i)) != 0) == is_in[i]);
  }
}

TEST_CASE("linear_cross_entropy: gradients") {
  for (const std::vector<std::int64_t>& cutoffs :
       {std::vector<std::int64_t>{}, {4}, {2, 5}, {1, 2, 8}}) {
    for (const double smoothing : {0.0, 0.2}) {
      const LinearLossAttrs attrs{.cutoffs = cutoffs, .label_smoothing = smoothing};
      OpCase c = linear_case(attrs, {0, 4, 8, -1, 1});
      c.build = [=](Graph& g, const std::vector<Value>& v) {
        return std::vector{linear_loss_of(g, v, attrs).sum};
      };
      CAPTURE(Attrs(attrs).text());
      gradcheck(c, {.skip = cutoffs.empty() ? std::vector{3, 4} : std::vector<int>{}});
    }
  }
  OpCase c = linear_case({}, {0, 4, 8, -1, 1});
  c.build = [](Graph& g, const std::vector<Value>& v) {
    return std::vector{
        ops::linear_cross_entropy(g, {.x = v[0], .table = v[1], .labels = v[5]}).sum};
  };
  gradcheck(c, {.skip = {2, 3, 4}});
}

TEST_CASE("linear_cross_entropy: a label outside of the words makes the loss NaN") {
  for (const std::int32_t label : {-2, 9}) {
    for (const std::vector<std::int64_t>& cutoffs : {std::vector<std::int64_t>{}, {4}}) {
      const LinearLossAttrs attrs{.cutoffs = cutoffs};
      OpCase c = linear_case(attrs, {0, 1, label, 2, 3});
      c.gradients = false;
      c.build = [=](Graph& g, const std::vector<Value>& v) {
        const ops::LinearLoss loss = linear_loss_of(g, v, attrs);
        return std::vector{loss.sum, loss.nll};
      };
      const Results results = run_reference(c);
      CHECK(std::isnan(results.at("y0").at(0)));
      CHECK(std::isnan(results.at("y1").at(0)));
    }
  }
}

TEST_CASE("linear_cross_entropy: refusals") {
  const DType f32 = DType::kF32;
  const auto refuses = [&](const LinearLossAttrs& attrs, std::size_t input, const TensorType& type,
                           const char* part) {
    std::vector<TensorType> types{{f32, {4, 3}}, {f32, {9, 3}}, {f32, {9}},
                                  {f32, {2, 3}}, {f32, {2}},    {DType::kI32, {4}}};
    types[input] = type;
    const bool has_clusters = attrs.cutoffs.size() > 0;
    check_op_refused(
        types,
        [&](Graph& g, const std::vector<Value>& v) {
          ops::LinearLossOperands of{.x = v[0], .table = v[1], .bias = v[2], .labels = v[5]};
          if (has_clusters) of.clusters = v[3], of.cluster_bias = v[4];
          return std::vector{ops::linear_cross_entropy(g, of, attrs).sum};
        },
        "linear_cross_entropy", part);
  };
  refuses({}, 0, {DType::kI32, {4, 3}}, "x: expected a floating type, got i32");
  refuses({}, 0, {f32, {4}}, "x: expected (rows, d >= 1), got (4)");
  refuses({}, 1, {f32, {9, 4}}, "table: expected (words >= 1, 3), got (9, 4)");
  refuses({}, 2, {f32, {8}}, "bias: expected (9), got (8)");
  refuses({}, 5, {DType::kI32, {5}}, "labels: expected (4), got (5)");
  refuses({}, 5, {f32, {4}}, "labels: expected i32, got f32");
  refuses({.cutoffs = {2, 5}}, 3, {f32, {3, 3}}, "clusters: expected (2, 3), got (3, 3)");
  refuses({.cutoffs = {2, 5}}, 4, {f32, {1}}, "cluster_bias: expected (2), got (1)");
  refuses({.cutoffs = {5, 5}}, 3, {f32, {2, 3}},
          "cutoffs: expected ascending numbers between 0 "
          "and 9, got 5, 5");
  refuses({.cutoffs = {2, 9}}, 3, {f32, {2, 3}}, "got 2, 9");
  refuses({.cutoffs = {0, 2}}, 3, {f32, {2, 3}}, "got 0, 2");
  refuses({.label_smoothing = 1.5}, 0, {f32, {4, 3}}, "label_smoothing: expected in [0, 1]");
}

TEST_CASE("linear_cross_entropy: operands that do not go together") {
  const DType f32 = DType::kF32;
  const auto refuses = [&](const std::vector<std::int64_t>& cutoffs, std::vector<bool> has,
                           const char* part) {
    const std::vector<TensorType> types{{f32, {4, 3}}, {f32, {9, 3}}, {f32, {9}},
                                        {f32, {2, 3}}, {f32, {2}},    {DType::kI32, {4}}};
    check_op_refused(
        types,
        [&](Graph& g, const std::vector<Value>& v) {
          ops::LinearLossOperands of{.x = v[0], .table = v[1], .labels = v[5]};
          if (has[0]) of.bias = v[2];
          if (has[1]) of.clusters = v[3];
          if (has[2]) of.cluster_bias = v[4];
          return std::vector{ops::linear_cross_entropy(g, of, {.cutoffs = cutoffs}).sum};
        },
        "linear_cross_entropy", part);
  };
  refuses({}, {true, true, true}, "clusters: expected none without cut-offs, got some");
  refuses({2, 5}, {true, false, false}, "clusters: expected one for each cut-off, got none");
  const char* bias = "cluster_bias: expected one if there are both a bias and clusters, got ";
  refuses({2, 5}, {false, true, true}, fmt::format("{}one", bias).c_str());
  refuses({2, 5}, {true, true, false}, fmt::format("{}none", bias).c_str());
  refuses({}, {true, false, true}, fmt::format("{}one", bias).c_str());
}

TEST_CASE("linear_cross_entropy: nll and lse have no gradient") {
  for (const int output : {LinearLossOutput::kNll, LinearLossOutput::kLse}) {
    Graph g;
    const Value x = g.input("x", {DType::kF32, {4, 3}}), t = g.input("t", {DType::kF32, {9, 3}});
    const Value labels = g.input("labels", {DType::kI32, {4}});
    const Value loss =
        ops::linear_cross_entropy(g, {.x = x, .table = t, .labels = labels}).sum.at(output);
    check_refused([&] { gradient(g, ops::sum(g, loss), std::vector{x}); },
                  "[linear_cross_entropy] nll and lse: expected no gradient, got one");
  }
}

TEST_CASE("linear_cross_entropy_backward: lse and dsum have the type of x") {
  const TensorType x{DType::kF32, {4, 3}}, table{DType::kF32, {9, 3}}, labels{DType::kI32, {4}};
  const TensorType lse{DType::kF32, {1, 4}}, dsum{DType::kF32, {}};
  const Build build = [](Graph& g, const std::vector<Value>& v) {
    const Value none;
    return std::vector{g.add(kLinearCrossEntropyBackward,
                             {v[0], v[1], none, none, none, v[2], v[3], v[4]}, LinearLossAttrs{})};
  };
  const char* op = "linear_cross_entropy_backward";
  check_op_refused({x, table, labels, {DType::kF64, {1, 4}}, dsum}, build, op,
                   "lse: expected f32, got f64");
  check_op_refused({x, table, labels, lse, {DType::kI32, {}}}, build, op,
                   "dsum: expected f32, got i32");
  check_op_refused({x, table, labels, {DType::kF32, {2, 4}}, dsum}, build, op,
                   "lse: expected (1, 4), got (2, 4)");
}

TEST_CASE("linear_cross_entropy_step: dsum is a number of x's type") {
  const TensorType x{DType::kF32, {4, 3}}, table{DType::kF32, {9, 3}}, labels{DType::kI32, {4}};
  const Build build = [](Graph& g, const std::vector<Value>& v) {
    const Value none;
    return std::vector{g.add(kLinearCrossEntropyStep, {v[0], v[1], none, none, none, v[2], v[3]},
                             LinearLossAttrs{})};
  };
  const char* op = "linear_cross_entropy_step";
  check_op_refused({x, table, labels, {DType::kF64, {}}}, build, op, "dsum: expected f32, got f64");
  check_op_refused({x, table, labels, {DType::kF32, {4}}}, build, op, "dsum: expected (), got (4)");
  check_op_refused({x, {DType::kF32, {9, 2}}, labels, {DType::kF32, {}}}, build, op, "table");
}

}  // namespace
}  // namespace keel::test
