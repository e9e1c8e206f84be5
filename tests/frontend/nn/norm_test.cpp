// Norms by name: parameters, axes, running state and gradients.
#include "frontend/nn/norm.h"

#include <cmath>

#include "src/ops/norm/batch_renorm.h"
#include "tests/frontend/nn/helpers.h"
#include "tests/support/checks.h"

namespace keel::nn {
namespace {

using Names = std::vector<std::string>;

Layer layer_alone(const std::string& text) {
  return [norm = Norm::parse(text)](Net& net, Value x) { return norm.alone(net, "n", x); };
}

TEST_CASE("norm: what a layer around it asks") {
  CHECK(Norm::parse("batchnorm").is_batch_type());
  CHECK_FALSE(Norm::parse("layernorm").is_batch_type());
  CHECK(Norm::parse("layernorm").has_bias());
  CHECK_FALSE(Norm::parse("layernorm{bias=false}").has_bias());
  CHECK_FALSE(Norm::parse("layernorm_simple").has_bias());
  CHECK_FALSE(Norm::parse("none").has_bias());
}

TEST_CASE("norm: every variant parses by name and tells its facts") {
  CHECK(norm_facts().size() >= 4);
  for (const NormFacts& facts : norm_facts()) {
    CAPTURE(facts.name);
    CHECK(Norm::parse(facts.name).name() == facts.name);
    CHECK_FALSE(facts.formula.empty());
    CHECK_FALSE(facts.source.empty());
  }
}

TEST_CASE("norm: gain and bias exist as the options say") {
  for (const char* name : {"layernorm", "batchnorm"}) {
    const auto parameters = [&](const std::string& options) {
      return LayerRun(layer_alone(name + options), {6, 5}).parameters;
    };
    CHECK(parameters("") == Names{"n/gain", "n/bias"});
    CHECK(parameters("{gain=false}") == Names{"n/bias"});
    CHECK(parameters("{bias=false}") == Names{"n/gain"});
    CHECK(parameters("{gain=false,bias=false}").empty());
  }
  CHECK(LayerRun(layer_alone("layernorm_simple"), {6, 5}).parameters.empty());
  CHECK(LayerRun(layer_alone("none"), {6, 5}).parameters.empty());
}

TEST_CASE("norm: every parameter receives a gradient, on tokens and images") {
  for (const NormFacts& facts : norm_facts()) {
    for (const Shape& shape : {Shape{6, 5}, Shape{2, 3, 5}, Shape{4, 3, 2, 2}}) {
      if (facts.name == "instancenorm" && shape.rank() == 2) continue;  // no time steps
      CAPTURE(facts.name);
      CAPTURE(shape.text());
      // The a of seednorm has no gradient while b is 0.
      const char* more = facts.name == "seednorm" ? "b_init=0.03125" : "";
      LayerRun run(layer_alone(facts.any_width(more)), shape);
      run.program->run();
      CHECK(run.program->fetch("y").shape() == shape);
      check_every_parameter_learns(run);
    }
  }
}

TEST_CASE("norm: layernorm takes a row, of an image all but its number") {
  const auto gain_shape = [](const char* text, const Shape& x) {
    return LayerRun(layer_alone(text), x).read("n/gain").shape();
  };
  CHECK(gain_shape("layernorm", {6, 5}) == Shape{5});
  CHECK(gain_shape("layernorm", {2, 3, 5}) == Shape{5});
  CHECK(gain_shape("layernorm", {4, 3, 2, 2}) == Shape{3, 2, 2});
  CHECK(gain_shape("layernorm{axes=1}", {4, 3, 2, 2}) == Shape{2});
  CHECK(gain_shape("layernorm{axes=2}", {2, 3, 5}) == Shape{3, 5});
  test::check_refused([&] { gain_shape("layernorm{axes=3}", {6, 5}); }, "", "(6, 5)");
}

// Mean and biased variance over the elements of `value` that `selects` picks by flat index.
struct MeanVar {
  double mean = 0, var = 0;
};
MeanVar mean_var(const Tensor& value, const std::function<bool(std::int64_t)>& selects) {
  double n = 0, sum = 0, squares = 0;
  for (std::int64_t e = 0; e < value.elements(); ++e) {
    if (!selects(e)) continue;
    n += 1, sum += value.at(e), squares += value.at(e) * value.at(e);
  }
  return {sum / n, squares / n - sum / n * sum / n};
}

TEST_CASE("norm: layernorm normalizes rows, batchnorm channels") {
  const Shape shape{4, 3, 2, 2};
  for (const char* text : {"layernorm", "batchnorm"}) {
    CAPTURE(std::string(text));
    LayerRun run(layer_alone(text), shape);
    run.program->run();
    const Tensor y = run.program->fetch("y", true);
    const bool rows = std::string(text) == "layernorm";
    for (std::int64_t group = 0; group < (rows ? 4 : 3); ++group) {
      const MeanVar m =
          mean_var(y, [&](std::int64_t e) { return (rows ? e / 12 : e / 4 % 3) == group; });
      CHECK(std::abs(m.mean) < 1e-12);
      CHECK(m.var == doctest::Approx(1).epsilon(1e-4));
    }
  }
}

TEST_CASE("norm: rmsnorm with cast_first rounds to bfloat16 before the product with the gain") {
  const Shape shape{3, 8};
  for (const std::string more : {"", ",offset=1", ",bias=true"}) {
    CAPTURE(more);
    LayerRun plain(layer_alone("rmsnorm{gain=false}"), shape),
        rounded(layer_alone("rmsnorm{cast_first=true,gain_init=1.2345678" + more + "}"), shape);
    plain.program->run();
    rounded.program->run();
    const Tensor xhat = plain.program->fetch("y", true).to(DType::kBF16),
                 y = rounded.program->fetch("y", true);
    const double factor = float(1.2345678) + (more == ",offset=1" ? 1 : 0);
    for (std::int64_t e = 0; e < y.elements(); ++e) {
      CHECK(y.at(e) == doctest::Approx(factor * xhat.at(e)).epsilon(1e-7));
    }
    check_every_parameter_learns(rounded);
  }
}

TEST_CASE("norm: batchnorm updates its state in training only") {
  for (const Shape& shape : {Shape{6, 3}, Shape{2, 3, 3}, Shape{4, 3, 2, 2}}) {
    for (Mode mode : {Mode::kTrain, Mode::kProbe, Mode::kEvaluate}) {
      CAPTURE(shape.text());
      CAPTURE(int(mode));
      LayerRun run(layer_alone("batchnorm{keep=0.75}"), shape, mode);
      CHECK(run.states == Names{"n/running_mean", "n/running_var"});
      run.program->run();
      const Tensor x = test::random_normal(shape, 5, 2, 3).to(DType::kF64);
      const std::int64_t inner = shape.rank() == 4 ? 4 : 1;
      for (std::int64_t c = 0; c < 3; ++c) {
        const MeanVar m = mean_var(x, [&](std::int64_t e) { return e / inner % 3 == c; });
        const double kept = mode == Mode::kTrain ? 0.75 : 1;
        CHECK(run.read("n/running_mean").at(c) ==
              doctest::Approx((1 - kept) * m.mean).epsilon(1e-12));
        CHECK(run.read("n/running_var").at(c) ==
              doctest::Approx(kept + (1 - kept) * m.var).epsilon(1e-12));
      }
    }
  }
}

TEST_CASE("norm: batchnorm evaluates with its running state") {
  LayerRun run(layer_alone("batchnorm{eps=0}"), {6, 2}, Mode::kEvaluate);
  run.variables.write("n/running_mean", test::f64({2}, {1, -1}));
  run.variables.write("n/running_var", test::f64({2}, {4, 0.25}));
  run.program->run();
  const Tensor x = test::random_normal({6, 2}, 5, 2, 3), y = run.program->fetch("y", true);
  for (std::int64_t row = 0; row < 6; ++row) {
    CHECK(y.at(2 * row) == doctest::Approx((x.at(2 * row) - 1) / 2));
    CHECK(y.at(2 * row + 1) == doctest::Approx((x.at(2 * row + 1) + 1) / 0.5));
  }
}

TEST_CASE("norm: a probe normalizes like training") {
  LayerRun train(layer_alone("batchnorm"), {6, 3}),
      probe(layer_alone("batchnorm"), {6, 3}, Mode::kProbe);
  train.program->run();
  probe.program->run();
  test::check_close(probe.program->fetch("y", true), train.program->fetch("y", true), 0);
}

TEST_CASE("norm: the schedule of batchrenorm is scaled to the length of the run") {
  const LayerRun run(layer_alone("batchrenorm{updates=2000}"), {6, 3});
  const auto attrs = [&] {
    for (int i = 0; i < run.graph.size(); ++i) {
      const Node& node = run.graph.node(i);
      if (node.kind == NodeKind::kOp && node.op == &kBatchRenorm)
        return node.attrs.as<BatchRenormAttrs>();
    }
    return BatchRenormAttrs{};
  }();
  CHECK(renorm_limits(attrs, 100).r_max == 1);
  CHECK(renorm_limits(attrs, 450).r_max == doctest::Approx(2));
  CHECK(renorm_limits(attrs, 800).r_max == 3);
  CHECK(renorm_limits(attrs, 300).d_max == doctest::Approx(2.5));
  CHECK(renorm_limits(attrs, 500).d_max == 5);
}

TEST_CASE("norm: what a norm asks of its mask, its input and its net") {
  const auto refused = [](const char* norm, const Shape& x, const Shape& mask,
                          std::string_view message) {
    test::check_refused(
        [&] {
          Graph g;
          Net net{.graph = g};
          const Value rows = mask.rank() > 0 ? g.input("mask", {DType::kU8, mask}) : Value{};
          Norm::parse(norm)(net, "n", g.input("x", {DType::kF32, x}), rows);
        },
        message);
  };
  refused("batchnorm", {2, 3, 4}, {6}, "norm: mask: expected (2, 3), got (6)");
  refused("pn_v", {2, 3, 4, 5}, {2}, "[pn_v] mask: expected none for images");
  refused("instancenorm", {6, 4}, {}, "[instancenorm] x: expected (n, steps, features)");
  refused("instancenorm", {2, 3, 4, 5}, {2}, "[instancenorm] mask: expected none for images");
  refused("instancenorm", {2, 3, 4}, {6}, "[instance_norm] mask: expected (2, 3), got (6)");
  refused("noisybatchnorm", {6, 4}, {}, "noisybatchnorm: expected a step");
}

TEST_CASE("norm: instancenorm normalizes a feature over the steps of a sample") {
  LayerRun run(layer_alone("instancenorm"), {3, 8, 2});
  run.program->run();
  const Tensor y = run.program->fetch("y", true);
  for (std::int64_t group = 0; group < 6; ++group) {
    const MeanVar m = mean_var(y, [&](std::int64_t e) { return e / 16 * 2 + e % 2 == group; });
    CHECK(std::abs(m.mean) < 1e-12);
    CHECK(m.var == doctest::Approx(1).epsilon(1e-4));
  }
}

TEST_CASE("norm: none is the value itself") {
  Graph g;
  Net net{.graph = g};
  const Value x = g.input("x", {DType::kF32, {2, 3}});
  CHECK(Norm::parse("none")(net, "n", x) == x);
  CHECK(g.size() == 1);
}

}  // namespace
}  // namespace keel::nn
