// The reference's roundings beside factors of bf16, in cases that can be computed by hand.
#include <doctest/doctest.h>

#include <cmath>

#include "backends/reference/backend.h"
#include "src/core/bf16.h"
#include "src/ops/attention.h"
#include "src/ops/elementwise.h"
#include "src/ops/linear_cross_entropy.h"
#include "src/ops/relative_attention.h"
#include "tests/support/checks.h"
#include "tests/support/graph_runner.h"

namespace keel::test {
namespace {

// Runs a node of an op on numbers, of which bf16 holds those of the factors.
class Single {
 public:
  Value factor(const Shape& shape, std::initializer_list<double> numbers) {
    return ops::cast(graph_, wide(shape, numbers), DType::kBF16);
  }
  Value wide(const Shape& shape, std::initializer_list<double> numbers) {
    const std::string name = graph_.unique_name("x");
    feeds_[name] = f64(shape, numbers);
    return graph_.input(name, {DType::kF32, shape});
  }
  Value integers(const Shape& shape, std::initializer_list<std::int32_t> numbers) {
    const std::string name = graph_.unique_name("n");
    feeds_[name] = Tensor::of<std::int32_t>(shape, numbers);
    return graph_.input(name, {DType::kI32, shape});
  }
  // The outputs of the node.
  std::vector<Tensor> run(const OpInfo& op, const std::vector<Value>& inputs, const Attrs& attrs) {
    const Value first = graph_.add(op, inputs, attrs);
    const int outputs = int(graph_.node(first.node).outputs.size());
    for (int port = 0; port < outputs; ++port) {
      if (graph_.shape(first.at(port)).elements() > 0) {
        graph_.mark_output(fmt::format("y{}", port), first.at(port));
      }
    }
    reference::ReferenceBackend judge;
    Results results = run_graph(judge, graph_, feeds_);
    std::vector<Tensor> all;
    for (int port = 0; port < outputs; ++port) {
      all.push_back(std::move(results[fmt::format("y{}", port)]));
    }
    return all;
  }

 private:
  Graph graph_;
  Feeds feeds_;
};

double near(double x) { return rounded_to_bf16(x); }

TEST_CASE("linear_cross_entropy: the reference rounds P beside factors of bf16, not in dbias") {
  Single s;
  const double bias = 0.3, dsum = 0.7, z0 = 1.5 * 0.25 + bias, z1 = 1.5 * -0.5 + 2 * bias;
  const double lse = std::log(std::exp(z0) + std::exp(z1));
  const auto d = s.run(kLinearCrossEntropyBackward,
                       {s.factor({1, 1}, {1.5}),
                        s.factor({2, 1}, {0.25, -0.5}),
                        s.wide({2}, {bias, 2 * bias}),
                        {},
                        {},
                        s.integers({1}, {1}),
                        s.wide({1, 1}, {lse}),
                        s.wide({}, {dsum})},
                       LinearLossAttrs{});
  const double p0 = dsum * std::exp(z0 - lse), p1 = dsum * (std::exp(z1 - lse) - 1);
  CHECK(near(p0) != p0);
  CHECK(d[LinearLossGradient::kDx].at(0) == doctest::Approx(near(p0) * 0.25 + near(p1) * -0.5));
  CHECK(d[LinearLossGradient::kDtable].at(0) == doctest::Approx(near(p0) * 1.5).epsilon(1e-12));
  CHECK(d[LinearLossGradient::kDtable].at(1) == doctest::Approx(near(p1) * 1.5).epsilon(1e-12));
  CHECK(d[LinearLossGradient::kDbias].at(0) == doctest::Approx(p0).epsilon(1e-12));
}

struct TwoKeys {
  double s0, s1, lse;  // scores of a query

  TwoKeys(double a, double b) : s0(a), s1(b), lse(std::log(std::exp(a) + std::exp(b))) {}
  // y for values v: probabilities are rounded at a power of 2.
  double y(double v0, double v1) const {
    const double power = std::exp2(std::ceil(std::log2(std::exp(lse))));
    return (near(std::exp(s0) / power) * v0 + near(std::exp(s1) / power) * v1) * power /
           std::exp(lse);
  }
};

TEST_CASE("attention: the reference rounds exponentials beside factors of bf16, but not lse") {
  Single s;
  const TwoKeys of(1.25 * 0.5, 1.25 * -0.75);
  const auto y = s.run(kAttention,
                       {s.factor({1, 1, 1}, {1.25}),
                        s.factor({1, 2, 1}, {0.5, -0.75}),
                        s.factor({1, 2, 1}, {3, 0.125}),
                        {},
                        {},
                        {}},
                       AttentionAttrs{.scale = 1});
  CHECK(y[0].at(0) == doctest::Approx(of.y(3, 0.125)).epsilon(1e-12));
  CHECK(y[1].at(0) == doctest::Approx(of.lse).epsilon(1e-12));
}

TEST_CASE("attention: the reference rounds P, dS and dy in the backward") {
  Single s;
  const TwoKeys of(1.25 * 0.5, 1.25 * -0.75);
  const double y = of.y(3, 0.125), dy = 0.7, g = near(dy);
  const auto d = s.run(kAttentionBackward,
                       {s.factor({1, 1, 1}, {1.25}),
                        s.factor({1, 2, 1}, {0.5, -0.75}),
                        s.factor({1, 2, 1}, {3, 0.125}),
                        {},
                        {},
                        {},
                        s.wide({1, 1, 1}, {y}),
                        s.wide({1, 1, 1}, {of.lse}),
                        s.wide({1, 1, 1}, {dy})},
                       AttentionAttrs{.scale = 1});
  const double p0 = std::exp(of.s0 - of.lse), p1 = std::exp(of.s1 - of.lse);
  const double ds0 = near(p0 * (g * 3 - g * y)), ds1 = near(p1 * (g * 0.125 - g * y));
  CHECK(d[0].at(0) == doctest::Approx(ds0 * 0.5 + ds1 * -0.75).epsilon(1e-6));
  CHECK(d[1].at(0) == doctest::Approx(ds0 * 1.25).epsilon(1e-6));
  CHECK(d[2].at(1) == doctest::Approx(near(p1) * g).epsilon(1e-6));
}

TEST_CASE("relative attention: the reference rounds exponentials beside factors of bf16") {
  Single s;
  const TwoKeys of(1.25 * 0.5 + 0.5 * 2, 1.25 * -0.75 + 0.5 * 1);
  const auto y = s.run(kRelativeAttention,
                       {s.factor({1, 1, 1}, {1.25}),
                        s.factor({1, 1, 1}, {0.5}),
                        s.factor({1, 2, 1}, {0.5, -0.75}),
                        s.factor({1, 2, 1}, {3, 0.125}),
                        s.factor({2, 1}, {1, 2}),
                        {}},
                       RelativeAttentionAttrs{.scale = 1});
  CHECK(y[0].at(0) == doctest::Approx(of.y(3, 0.125)).epsilon(1e-12));
}

}  // namespace
}  // namespace keel::test
