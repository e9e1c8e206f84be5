// The channels-last pass: what it leaves of transposes, and that results stay what they were.
#include <doctest/doctest.h>

#include <algorithm>

#include "backends/backends.h"
#include "frontend/nn/residual.h"
#include "src/autodiff/gradient.h"
#include "src/graph/verify.h"
#include "src/ops/conv2d.h"
#include "src/ops/elementwise.h"
#include "src/ops/layout.h"
#include "src/ops/loss.h"
#include "src/ops/matmul.h"
#include "src/ops/pool2d.h"
#include "src/ops/reduce.h"
#include "src/passes/pipeline.h"
#include "src/runtime/program.h"
#include "tests/passes/count.h"
#include "tests/support/checks.h"
#include "tests/support/graph_runner.h"

namespace keel::test {
namespace {

using Axes = std::vector<std::int64_t>;

Graph converted(const Graph& g) { return run_passes(g, {.channels_last = true}); }

const TensorType kImages{DType::kF32, {3, 2, 8, 6}};

Value parameter(Graph& g, const std::string& name, const Shape& shape) {
  return g.parameter(name, {DType::kF32, shape}, [](Tensor&, const Philox&) {});
}

struct Layer {
  std::int64_t from, to, window;
};

Value convolve(Graph& g, Value x, const std::string& name, const Layer& layer) {
  const Value w = parameter(g, name + "/w", {layer.to, layer.from, layer.window, layer.window});
  return ops::conv2d(g, x, w, {.bias = parameter(g, name + "/b", {layer.to})});
}

// Two convolutions with ReLU and pooling, and a linear layer, with all gradients.
Graph convolutional_network(std::int64_t n) {
  Graph g;
  const Value x = g.input("x", {DType::kF32, {n, 784}});
  Value v = ops::reshape(g, x, {n, 1, 28, 28});
  v = ops::max_pool2d(g, ops::relu(g, convolve(g, v, "conv1", {1, 20, 5})), 2, 2);
  v = ops::max_pool2d(g, ops::relu(g, convolve(g, v, "conv2", {20, 50, 5})), 2, 2);
  v = ops::matmul(g, ops::reshape(g, v, {n, 800}), parameter(g, "fc/w", {800, 10}));
  const Value loss = ops::sum(g, ops::square(g, v));
  g.mark_output("loss", loss);
  const std::vector<Value> leaves = g.leaves(NodeKind::kParameter);
  const std::vector<Value> gradients = gradient(g, loss, leaves);
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    g.mark_output("d_" + g.node(leaves[i]).name, gradients[i]);
  }
  return g;
}

TEST_CASE("to_channels_last: a convolutional network turns only where it is flattened") {
  const Graph before = convolutional_network(4), after = converted(before);
  CHECK(count(run_passes(before), kTranspose) == 0);
  CHECK(count(after, kTranspose) == 2);  // forward, and the gradient on its way back
  for (int i = 0; i < after.size(); ++i) {
    const Node& node = after.node(i);
    if (node.op == &kTranspose) CHECK(node.outputs[0].shape.elements() == 4 * 800);
    if (node.op == &kConv2d) CHECK(node.attrs.as<ConvAttrs>().channels_last);
    if (node.op == &kMaxPool2dBackward) CHECK(node.attrs.as<PoolBackwardAttrs>().channels_last);
  }
  for (const NamedValue& output : before.outputs()) {
    const auto same = std::ranges::find(after.outputs(), output.name, &NamedValue::name);
    REQUIRE(same != after.outputs().end());
    CHECK(after.type(same->value) == before.type(output.value));
  }
}

TEST_CASE(
    "to_channels_last: graphs without images stay as they are, and a second run adds nothing") {
  Graph g;
  const Value x = g.input("x", {DType::kF32, {4, 6}});
  g.mark_output("y", ops::relu(g, ops::matmul(g, x, parameter(g, "w", {6, 5}))));
  CHECK(to_channels_last(g).size() == g.size());
  const Graph once = converted(convolutional_network(2));
  CHECK(to_channels_last(once).size() == once.size());
}

// Runs `build` on images and gives the graph after the pass.
template <class BuildOne>
Graph converted_images(const BuildOne& build) {
  Graph g;
  g.mark_output("y", build(g, g.input("x", kImages)));
  Graph result = to_channels_last(g);
  verify(result, "to_channels_last");
  CHECK(result.type(result.outputs()[0].value) == g.type(g.outputs()[0].value));
  return result;
}

Value pool(Graph& g, Value x) { return ops::avg_pool2d(g, x, 2, 1); }

TEST_CASE("to_channels_last: what commutes with a transpose") {
  const auto transposes = [](auto build) { return count(converted_images(build), kTranspose); };
  CHECK(transposes(pool) == 2);
  CHECK(transposes([](Graph& g, Value x) { return pool(g, pool(g, x)); }) == 2);
  CHECK(transposes([](Graph& g, Value x) { return pool(g, ops::relu(g, pool(g, x))); }) == 2);
  CHECK(transposes([](Graph& g, Value x) { return ops::mul(g, pool(g, x), g.constant(2.0)); }) ==
        2);
  // A gain a channel is turned by a reshape; one a column is not worth it.
  CHECK(transposes([](Graph& g, Value x) {
          return pool(g, ops::mul(g, pool(g, x), parameter(g, "gain", {1, 2, 1, 1})));
        }) == 2);
  CHECK(transposes([](Graph& g, Value x) {
          return pool(g, ops::mul(g, pool(g, x), parameter(g, "gain", {5})));
        }) == 4);
  // Sums over places; one that leaves axes in another order needs the old one.
  for (const Axes& axes : {Axes{0, 2, 3}, Axes{2, 3}, Axes{1, 2}, Axes{0, 1, 2, 3}}) {
    CHECK(transposes([&](Graph& g, Value x) { return ops::sum(g, pool(g, x), axes); }) == 1);
  }
  for (const Axes& axes : {Axes{2}, Axes{0}, Axes{0, 3}}) {
    CHECK(transposes([&](Graph& g, Value x) { return ops::sum(g, pool(g, x), axes); }) == 2);
  }
  // Transposes that the graph has itself.
  CHECK(transposes([](Graph& g, Value x) {
          return ops::transpose(g, pool(g, x), {0, 2, 3, 1});
        }) == 1);
  CHECK(transposes([](Graph& g, Value x) {
          return pool(g, ops::transpose(g, x, {0, 3, 1, 2}));
        }) == 1);
}

const Shape kResidualInput = {4, 3, 8, 6};  // height and width differ, lest they change places

// A residual network in small: convolution, norm, relu, a block with a shortcut that has fewer
// pixels and more channels, the mean over pixels, and all gradients.
Graph residual_network(const std::string& norm) {
  Graph g;
  const Value step = g.constant(Tensor(DType::kI32, {}));
  nn::Net net{.graph = g, .step = step, .first_row = step};
  const Value x = g.input("x", {DType::kF32, kResidualInput});
  const nn::LayerOptions conv{.bias = false, .norm = nn::Norm::parse(norm)};
  Value h = nn::conv2d(net, "conv", x, {.channels = 4, .window = 3, .padding = 1}, conv);
  h = nn::residual_block(net, "block", ops::relu(g, h), {.channels = 8, .stride = 2}, conv);
  h = nn::linear(net, "fc", ops::reshape(g, ops::mean(g, h, {2, 3}), {2, 16}), 5);
  const Value loss = ops::sum(g, ops::square(g, h));
  g.mark_output("loss", loss);
  const std::vector<Value> leaves = g.leaves(NodeKind::kParameter);
  const auto [gradients, changed] = differentiate(g, loss, leaves, Unreached::kZero);
  net.update(changed);
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    g.mark_output("d " + g.node(leaves[i]).name, gradients[i]);
  }
  return g;
}

std::int64_t turned_elements(const Graph& g) {
  std::int64_t elements = 0;
  for (int i = 0; i < g.size(); ++i) {
    if (g.node(i).op == &kTranspose) elements += g.node(i).outputs[0].shape.elements();
  }
  return elements;
}

TEST_CASE("to_channels_last: norms, shortcut and mean of a residual network stay channels last") {
  const std::int64_t pictures = kResidualInput.elements();
  for (const char* norm : {"batchnorm", "powernorm{heads=0}", "pn_v", "mabn", "batchrenorm",
                           "layernorm{per_pixel=true}", "none"}) {
    CAPTURE(std::string(norm));
    CHECK(turned_elements(converted(residual_network(norm))) == pictures);
  }
  // A layer norm over whole images turns gains, biases and their gradients, 4 x 8 x 6 and twice 8 x
  // 4 x 3 of each.
  CHECK(turned_elements(converted(residual_network("layernorm"))) ==
        pictures + 4 * (192 + 96 + 96));
}

TEST_CASE("to_channels_last: a residual network computes what it did") {
  const auto backend = make_backend("reference");
  for (const char* norm : {"batchnorm", "powernorm{heads=0}", "pn_v", "mabn", "batchrenorm",
                           "layernorm", "layernorm{per_pixel=true}", "groupnorm{groups=2}"}) {
    CAPTURE(std::string(norm));
    const Graph before = residual_network(norm), after = to_channels_last(before);
    verify(after, "to_channels_last");
    Variables first(*backend, 1), second(*backend, 1);
    Program planar(*backend, first, before), last(*backend, second, after);
    for (Program* program : {&planar, &last}) {
      program->feed("x", random_normal(kResidualInput, 5, 2, 3));
      program->run();
    }
    for (const NamedValue& output : before.outputs()) {
      CAPTURE(output.name);
      check_close(last.fetch(output.name, true), planar.fetch(output.name, true), 1e-11);
    }
    for (const auto& [name, variable] : first.all()) {
      CAPTURE(name);
      check_close(second.read(name, true), first.read(name, true), 1e-11);
    }
  }
}

// Every side of the frame and of the part has a size of its own.
TEST_CASE("to_channels_last: frames, parts, stretching and sums of images are what they were") {
  const auto backend = make_backend("reference");
  const auto check_same = [&](const auto& build, int transposes) {
    Graph before;
    before.mark_output("y", build(before, pool(before, before.input("x", kImages))));
    const Graph after = to_channels_last(before);
    verify(after, "to_channels_last");
    CHECK(count(after, kTranspose) == transposes);
    Variables none(*backend, 1);
    Program planar(*backend, none, before), last(*backend, none, after);
    for (Program* program : {&planar, &last}) {
      program->feed("x", random_normal(kImages.shape, 5, 2, 3));
      program->run();
    }
    check_close(last.fetch("y", true), planar.fetch("y", true), 1e-13);
  };
  check_same([](Graph& g, Value x) { return ops::pad(g, x, {1, 0, 2, 3}, {0, 2, 1, 4}, 7); }, 2);
  check_same([](Graph& g, Value x) { return ops::slice(g, x, {1, 0, 2, 3}, {2, 2, 4, 2}); }, 2);
  check_same([](Graph& g, Value x) { return ops::sum(g, x, {1}); }, 1);
  check_same([](Graph& g, Value x) { return ops::max(g, x, {1, 3}); }, 1);
}

TEST_CASE("to_channels_last: one channel or one place is a reshape") {
  Graph g;
  const Value x = g.input("x", {DType::kF32, {3, 1, 4, 4}});
  const Value w = parameter(g, "w", {5, 1, 4, 4});
  g.mark_output("y", ops::conv2d(g, x, w));
  const Graph after = to_channels_last(g);
  CHECK(count(after, kTranspose) == 0);
  CHECK(count(after, kReshape) == 2);
}

TEST_CASE("conv2d and pooling: shapes with channels last, and no gradients then") {
  Graph g;
  const Value x = g.input("x", {DType::kF32, {2, 9, 7, 3}});
  const Value y = g.add(kConv2d, {x, parameter(g, "w", {5, 3, 3, 2}), Value{}},
                        ConvAttrs{.stride = 2, .padding = 1, .channels_last = true});
  CHECK(g.shape(y) == Shape{2, 5, 4, 5});
  const Value z =
      g.add(kMaxPool2d, {x}, PoolAttrs{.window = 3, .stride = 2, .channels_last = true});
  CHECK(g.shape(z) == Shape{2, 4, 3, 3});
  CHECK(g.shape(z.at(1)) == Shape{2, 4, 3, 3});
  check_refused([&] { gradient(g, ops::sum(g, y), std::vector{x}); }, "[conv2d] gradients");
  check_refused([&] { gradient(g, ops::sum(g, z), std::vector{x}); }, "[pool2d] gradients");
}

}  // namespace
}  // namespace keel::test
