// Layers that are applied many times, and weights that layers share.
#include "frontend/nn/embedding.h"
#include "frontend/nn/layers.h"
#include "src/ops/elementwise.h"
#include "src/ops/layout.h"
#include "src/ops/matmul.h"
#include "src/ops/stop_gradient.h"
#include "tests/frontend/nn/helpers.h"
#include "tests/support/checks.h"

namespace keel::nn {
namespace {

using Names = std::vector<std::string>;

// h <- tanh(x_t + h W + b), five times.
Layer recurrent(const LayerOptions& options) {
  return [=](Net& net, Value x) {
    Graph& g = net.graph;
    const Linear cell(net, "cell", 3, 3, options);
    Value h = ops::slice_axis(g, x, 0, 0, 4);
    for (std::int64_t t = 1; t < 6; ++t) {
      h = ops::tanh(g, ops::add(g, ops::slice_axis(g, x, 0, 4 * t, 4), cell(h, {.t = t - 1})));
    }
    return h;
  };
}

TEST_CASE("linear: applied five times it has one weight, whose gradient is the sum") {
  LayerRun run(recurrent({}), {24, 3});
  CHECK(run.parameters == Names{"cell/weight", "cell/bias"});
  check_central_differences(run);
}

TEST_CASE("linear: a weight is formed once, whatever the applications") {
  LayerRun run(recurrent({.norm = Norm::parse("weightnorm")}), {24, 3});
  CHECK(run.parameters == Names{"cell/weight", "cell/norm/gain", "cell/bias"});
  int formed = 0;
  for (int i = 0; i < run.graph.size(); ++i) {
    const OpInfo* op = run.graph.node(i).op;
    formed += op && op->name == "weight_norm";
  }
  CHECK(formed == 1);
  check_central_differences(run);
}

TEST_CASE("linear: after a product that somebody else computed it does what it does itself") {
  for (const char* norm : {"none", "layernorm", "batchnorm", "weightnorm"}) {
    CAPTURE(std::string(norm));
    const LayerOptions options{.bias = norm != std::string("layernorm"),
                               .bias_init = [](std::int64_t) { return constant(0.5); },
                               .norm = Norm::parse(norm)};
    LayerRun run(
        [&](Net& net, Value x) {
          Graph& g = net.graph;
          const Linear fc(net, "fc", 3, 4, options);
          return ops::sub(g, fc(x), fc.after_product(ops::matmul(g, x, fc.weight())));
        },
        {6, 3}, Mode::kEvaluate);
    run.program->run();
    const Tensor y = run.program->fetch("y", true);
    for (std::int64_t i = 0; i < y.elements(); ++i) CHECK(std::abs(y.at(i)) < 1e-14);
  }
}

TEST_CASE("linear: its norm has one gain, and statistics of every time step") {
  const auto norm = Norm::parse("batchnorm{gain_init=0.1}");
  LayerRun run(recurrent({.bias = false, .norm = norm}), {24, 3}, Mode::kProbe);
  CHECK(run.parameters == Names{"cell/weight", "cell/norm/gain", "cell/norm/bias"});
  CHECK(run.states.size() == 2 + 4 * 3);
  check_central_differences(run);
}

TEST_CASE("conv2d: applied twice it has one weight, whose gradient is the sum") {
  LayerRun run(
      [](Net& net, Value x) {
        const Conv2d conv(net, "conv", 2, {.channels = 2, .window = 3, .padding = 1});
        return conv(ops::tanh(net.graph, conv(x)));
      },
      {2, 2, 4, 4});
  CHECK(run.parameters == Names{"conv/weight", "conv/bias"});
  check_central_differences(run);
}

// A language model of one layer: words through a table, logits by the same table. `looks` and
// `scores` say which of the two uses the gradient goes through.
Layer tied(bool looks, bool scores) {
  return [=](Net& net, Value x) {
    Graph& g = net.graph;
    const auto open = [&](Value v, bool is_open) { return is_open ? v : ops::stop_gradient(g, v); };
    const Embedding words(net, "words", 7, 3);
    const Value ids = g.constant(Tensor::of<std::int32_t>({4}, {2, 0, 6, 2}));
    const Value h = ops::tanh(g, ops::add(g, x, open(words(ids), looks)));
    return Linear::sharing(net, "logits", open(words.table(), scores))(h);
  };
}

TEST_CASE("linear: the gradient of a shared table is the sum of both uses") {
  LayerRun both(tied(true, true), {4, 3}), look(tied(true, false), {4, 3}),
      score(tied(false, true), {4, 3});
  CHECK(both.parameters == Names{"words/table", "logits/bias"});
  CHECK(both.graph.shape(both.graph.outputs()[0].value) == Shape{4, 7});
  check_central_differences(both);
  for (LayerRun* run : {&both, &look, &score}) run->program->run();
  const Tensor sum = both.program->fetch("d words/table", true),
               a = look.program->fetch("d words/table", true),
               b = score.program->fetch("d words/table", true);
  CHECK(largest(a) > 0.01);
  CHECK(largest(b) > 0.01);
  for (std::int64_t e = 0; e < sum.elements(); ++e) {
    CHECK(std::abs(sum.at(e) - a.at(e) - b.at(e)) <= 1e-13 * largest(sum));
  }
}

TEST_CASE("linear: y = x T^T + b with a shared table, and a norm of the output") {
  LayerRun run(
      [](Net& net, Value x) {
        const Value table = net.parameter("table", {4, 3}, normal(1));
        const LayerOptions options{.norm = Norm::parse("layernorm_simple{eps=0}")};
        const Value y = Linear::sharing(net, "out", table, {.bias = false})(x);
        return ops::concat(net.graph, {y, Linear::sharing(net, "normed", table, options)(x)}, 1);
      },
      {2, 3});
  run.program->run();
  const Tensor x = test::random_normal({2, 3}, 5, 2, 3), table = run.read("table"),
               y = run.program->fetch("y", true);
  for (std::int64_t row = 0; row < 2; ++row) {
    double normed = 0;
    for (std::int64_t out = 0; out < 4; ++out) {
      double expected = 0;
      for (std::int64_t in = 0; in < 3; ++in)
        expected += x.at(row * 3 + in) * table.at(out * 3 + in);
      CHECK(y.at(row * 8 + out) == doctest::Approx(expected).epsilon(1e-12));
      normed += y.at(row * 8 + 4 + out);
    }
    CHECK(std::abs(normed) < 1e-12);
  }
}

TEST_CASE("linear: refusals of shared tables") {
  Graph g;
  Net net{.graph = g};
  const Value cube = g.parameter("cube", {DType::kF32, {2, 3, 4}}, {});
  const Value table = g.parameter("table", {DType::kF32, {4, 3}}, {});
  test::check_refused([&] { Linear::sharing(net, "out", cube); },
                      "[linear] out: expected a table (out, in), got (2, 3, 4)");
  test::check_refused(
      [&] { Linear::sharing(net, "out", table, {.norm = Norm::parse("weightnorm")}); },
      "[linear] out: expected no norm of the weight, which is shared, got weightnorm");
}

// The second application is of other axes and other rows than those that were measured.
TEST_CASE("linear: first values from the first application hold for all") {
  const auto layer = [](Net& net, Value x) {
    const Linear fc(net, "fc", 3, 4, {.norm = Norm::parse("weightnorm")});
    const Value cube = ops::reshape(net.graph, ops::slice_axis(net.graph, x, 0, 4, 6), {2, 3, 3});
    const Value last = ops::reshape(net.graph, fc(cube), {6, 4});
    return ops::concat(net.graph, {fc(ops::slice_axis(net.graph, x, 0, 0, 4)), last}, 0);
  };
  LayerRun first(layer, {10, 3}, Mode::kDataDependentInit);
  first.program->run();
  LayerRun then(layer, {10, 3}, Mode::kProbe);
  for (const std::string& name : first.parameters) then.variables.write(name, first.read(name));
  then.program->run();
  test::check_close(then.program->fetch("y", true), first.program->fetch("y", true), 1e-12);
}

}  // namespace
}  // namespace keel::nn
