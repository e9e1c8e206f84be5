// Weight normalization: worked example, gradients, agreement of the tested backend with the
// reference for both orientations, threads, in place, refusals.
#include "src/ops/norm/weight_norm.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "backends/backends.h"
#include "src/autodiff/gradient.h"
#include "src/ops/elementwise.h"
#include "src/ops/layout.h"
#include "src/ops/reduce.h"
#include "tests/support/checks.h"
#include "tests/support/gradcheck.h"
#include "tests/support/tested_backends.h"

namespace keel::test {
namespace {

struct Weights {
  Tensor v, g, dw;
  WeightNormAttrs attrs = {};
  int threads = 2;
  bool keep_dw = false;  // so that dv cannot be written over it

  // "w", and "dv" and "dg" for the gradient dw of w.
  Results run(const std::string& backend) const {
    Graph graph;
    const auto input = [&](const char* name, const Tensor& t) {
      return graph.input(name, {DType::kF32, t.shape()});
    };
    const Value in_v = input("v", v), in_g = input("g", g), in_dw = input("dw", dw);
    const Value w = ops::weight_norm(graph, in_v, in_g, attrs);
    const Value wrt[] = {in_v, in_g, w};
    const std::vector<Value> d = gradient(graph, ops::sum(graph, ops::mul(graph, w, in_dw)), wrt);
    graph.mark_output("w", w);
    graph.mark_output("dv", d[0]);
    graph.mark_output("dg", d[1]);
    if (keep_dw) graph.mark_output("kept", d[2]);
    Feeds feeds;
    feeds["v"] = v.clone();
    feeds["g"] = g.clone();
    feeds["dw"] = dw.clone();
    return run_graph(*make_backend(backend, {threads}), graph, feeds);
  }
};

Weights random_weights(const Shape& shape, bool by_column, double size = 1) {
  const auto rounded = [](const Tensor& t) { return t.to(DType::kF32).to(DType::kF64); };
  const std::int64_t units = by_column ? shape[1] : shape[0];
  return {rounded(random_normal(shape, 1, 0, size)),
          rounded(random_normal({units}, 2, 1, 0.3)),
          rounded(random_normal(shape, 3)),
          {.by_column = by_column}};
}

Tensor transposed(const Tensor& t) {
  Tensor result(t.dtype(), {t.shape()[1], t.shape()[0]});
  for (std::int64_t i = 0; i < t.elements(); ++i) {
    const std::int64_t row = i / t.shape()[1], column = i % t.shape()[1];
    result.as<double>()[std::size_t(column * t.shape()[0] + row)] = t.at(i);
  }
  return result;
}

// |got - expected| within 16 eps of the unit's own scale: |g| for w, |g| / |v| max |dw| for dv and
// the sum of |dw u| for dg, which are bounded here by their norms.
void check_agreement(const Weights& weights) {
  const Results got = weights.run(default_backend()), expected = weights.run("reference");
  const ColumnSizes sizes = weight_sizes(weights.v.shape(), weights.attrs);
  const double eps = 16 * double(std::numeric_limits<float>::epsilon());
  std::int64_t wrong = 0;
  for (std::int64_t c = 0; c < sizes.channels; ++c) {
    double squares = 0, dw_squares = 0;
    const auto for_unit = [&](auto body) {
      for (std::int64_t e = 0; e < sizes.count(); ++e) {
        body((e / sizes.inner * sizes.channels + c) * sizes.inner + e % sizes.inner);
      }
    };
    for_unit([&](std::int64_t i) {
      squares += weights.v.at(i) * weights.v.at(i);
      dw_squares += weights.dw.at(i) * weights.dw.at(i);
    });
    const double g = std::abs(weights.g.at(c)), dw = std::sqrt(dw_squares);
    const auto count_wrong = [&](const char* name, std::int64_t i, double scale) {
      const double error = std::abs(got.at(name).at(i) - expected.at(name).at(i));
      wrong += !(error <= eps * scale);
    };
    count_wrong("dg", c, dw);
    for_unit([&](std::int64_t i) {
      count_wrong("w", i, g);
      count_wrong("dv", i, g / std::sqrt(squares) * dw);
    });
  }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("weight_norm: worked example, by row and by column") {
  const Tensor v = f64({2, 3}, {1, 2, 2, 0, 3, 4}), dw = f64({2, 3}, {.1, .2, .3, .4, -.5, .6});
  const Tensor w = f64({2, 3}, {0.666667, 1.333333, 1.333333, 0, 0.3, 0.4});
  const Tensor dv = f64({2, 3}, {-0.014815, -0.029630, 0.037037, 0.040000, -0.060800, 0.045600});
  for (const std::string& backend : tested_backends()) {
    const Results rows = Weights{v.clone(), f64({2}, {2, 0.5}), dw.clone()}.run(backend);
    const Results columns =
        Weights{transposed(v), f64({2}, {2, 0.5}), transposed(dw), {.by_column = true}}.run(
            backend);
    check_close(rows.at("w"), w, 1e-6);
    check_close(rows.at("dv"), dv, 1e-6);
    check_close(columns.at("w"), transposed(w), 1e-6);
    check_close(columns.at("dv"), transposed(dv), 1e-6);
    for (const Results& r : {std::cref(rows), std::cref(columns)}) {
      check_close(r.at("dg"), f64({2}, {0.366667, 0.18}), 1e-6);
    }
  }
}

TEST_CASE("weight_norm: gradients against central differences") {
  for (double eps : {0., 0.5}) {
    for (const auto& [shape, by_column] :
         {std::pair{Shape{3, 7}, false}, {{7, 3}, true}, {{4, 2, 3, 3}, false}, {{5, 1}, false}}) {
      OpCase c;
      c.inputs.push_back(random_normal(shape, 1));
      c.inputs.push_back(random_normal({by_column ? shape[1] : shape[0]}, 2));
      c.build = [&](Graph& g, const std::vector<Value>& in) {
        return std::vector{ops::weight_norm(g, in[0], in[1], {.by_column = by_column, .eps = eps})};
      };
      gradcheck(c);
    }
  }
}

TEST_CASE("weight_norm: eps is added to the sum of squares") {
  for (const std::string& backend : tested_backends()) {
    const Weights weights{
        f64({2, 2}, {3, 4, 0, 0}), f64({2}, {6, 5}), f64({2, 2}, {1, 0, 1, 1}), {.eps = 11}};
    const Results results = weights.run(backend);  // the lengths are 6 and sqrt(11)
    check_close(results.at("w"), f64({2, 2}, {3, 4, 0, 0}), 1e-6);
    check_close(results.at("dg"), f64({2}, {0.5, 0}), 1e-6);
    const double third = 5 / std::sqrt(11.);
    check_close(results.at("dv"), f64({2, 2}, {0.75, -1. / 3, third, third}), 1e-6);
  }
}

TEST_CASE("weight_norm: every unit has length g, and dv is orthogonal to v") {
  for (const std::string& backend : tested_backends()) {
    const Weights weights = random_weights({5, 40}, false);
    const Results results = weights.run(backend);
    for (std::int64_t i = 0; i < 5; ++i) {
      double squares = 0, product = 0;
      for (std::int64_t e = 40 * i; e < 40 * (i + 1); ++e) {
        squares += results.at("w").at(e) * results.at("w").at(e);
        product += results.at("dv").at(e) * weights.v.at(e);
      }
      CHECK(std::sqrt(squares) == doctest::Approx(std::abs(weights.g.at(i))).epsilon(1e-6));
      CHECK(std::abs(product) <= 1e-5);
    }
  }
}

TEST_CASE("weight_norm: the backend agrees with the reference" * doctest::test_suite("slow")) {
  for (bool by_column : {false, true}) {
    CAPTURE(by_column);
    for (const auto& [in, out] : {std::pair{1, 1},
                                  {1, 9},
                                  {3, 2},
                                  {17, 33},
                                  {200, 6},
                                  {257, 31},
                                  {1000, 70},
                                  {4099, 5},
                                  {20000, 3},
                                  {600, 1100},
                                  {9000, 130},
                                  {9001, 2}}) {
      CAPTURE(in);
      CAPTURE(out);
      const Shape shape = by_column ? Shape{in, out} : Shape{out, in};
      for (double size : {1., 1e-25, 1e25}) {
        if (size != 1 && in * out > 100000) continue;
        check_agreement(random_weights(shape, by_column, size));
      }
    }
  }
  check_agreement(random_weights({6, 5, 3, 3}, false));
}

TEST_CASE("weight_norm: the same bits for any thread count, and in place" *
          doctest::test_suite("slow")) {
  for (const auto& [shape, by_column] :
       {std::pair{Shape{4099, 65}, true}, {{300, 600}, false}, {{300, 40}, true}}) {
    Weights weights = random_weights(shape, by_column);
    weights.threads = 1;
    weights.keep_dw = true;
    const Results expected = weights.run(default_backend());
    weights.keep_dw = false;
    for (int threads : {1, 2, 3, 7}) {
      weights.threads = threads;
      const Results got = weights.run(default_backend());
      for (const char* name : {"w", "dv", "dg"}) check_close(got.at(name), expected.at(name), 0);
    }
  }
}

TEST_CASE("weight_norm: refusals") {
  const auto refused = [](const TensorType& v, const TensorType& length,
                          const WeightNormAttrs& attrs, std::string_view message) {
    check_op_refused(
        {v, length},
        [&](Graph& g, const std::vector<Value>& in) {
          return std::vector{ops::weight_norm(g, in[0], in[1], attrs)};
        },
        "weight_norm", message);
  };
  const TensorType v{DType::kF32, {3, 4}}, three{DType::kF32, {3}}, four{DType::kF32, {4}};
  refused({DType::kI32, {3, 4}}, three, {}, "v: expected a floating type, got i32");
  refused({DType::kF32, {3}}, three, {}, "v: expected (out, ...), got (3)");
  refused({DType::kF32, {3, 4, 1}}, four, {.by_column = true},
          "v: expected (in, out), got (3, 4, 1)");
  refused({DType::kF32, {3, 0}}, three, {}, "v: expected at least one weight a unit, got (3, 0)");
  refused({DType::kF32, {0, 4}}, four, {.by_column = true},
          "v: expected at least one weight a unit, got (0, 4)");
  refused(v, four, {}, "g: expected (3), got (4)");
  refused(v, three, {.by_column = true}, "g: expected (4), got (3)");
  refused(v, {DType::kF64, {3}}, {}, "g: expected f32, got f64");
  refused(v, three, {.eps = -1}, "eps: expected >= 0, got -1");
}

}  // namespace keel::test
