// Reads of kernels: x and dy come from memory once for a forward, once for a backward.
#include <doctest/doctest.h>

#include <algorithm>

#include "backends/backends.h"
#include "backends/cuda/emulator/simt.h"
#include "src/autodiff/gradient.h"
#include "src/ops/elementwise.h"
#include "src/ops/norm/ada_norm.h"
#include "src/ops/norm/batch_norm.h"
#include "src/ops/norm/group_norm.h"
#include "src/ops/norm/instance_norm.h"
#include "src/ops/norm/layer_norm.h"
#include "src/ops/norm/pn_v.h"
#include "src/ops/norm/rms_norm.h"
#include "src/ops/reduce.h"
#include "src/runtime/interpreter.h"
#include "tests/support/graph_runner.h"

namespace keel::cuda {
namespace {

using Build = std::function<Value(Graph&, Value x, Value gain, Value bias)>;

// The largest and the smallest number of reads of an element. The first element of a row, of two
// groups or one, stands aside: a forward takes it as the row's origin.
struct Reads {
  int least, most;
  double average;

  Reads(const simt::ReadCount& count, std::int64_t width) : least(1 << 30), most(0) {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < count.times().size(); ++i) {
      sum += count.times()[i];
      if (std::int64_t(i) % (width / 2) == 0) continue;
      least = std::min(least, count.times()[i]);
      most = std::max(most, count.times()[i]);
    }
    average = double(sum) / double(count.times().size());
  }
};

// Runs a norm forward and backward and returns the reads of x and of dy, the gradient of y.
std::pair<Reads, Reads> reads_of(const Shape& shape, const Build& build) {
  Graph g;
  const auto leaf = [&](const char* name, const Shape& s) {
    return g.input(name, {DType::kF32, s});
  };
  const Shape row{shape.rank() == 4 ? shape[1] : shape.back()};
  const Value x = leaf("x", shape), dy = leaf("dy", shape);
  const Value y = build(g, x, leaf("gain", row), leaf("bias", row));
  const std::vector<Value> output_gradients = [&] {
    std::vector<Value> all(g.node(y.node).outputs.size());
    all[0] = dy;
    return all;
  }();
  const bool needed[] = {true, true, true, false, false, false};
  StateValues states;
  BackwardContext context(g, y.node, output_gradients, {needed, g.node(y.node).inputs.size()},
                          states);
  g.node(y.node).op->backward(context);
  const auto backend = make_backend("cuda");
  Interpreter run(*backend, g, 1);
  std::uint32_t stream = 0;
  for (const char* name : {"x", "dy", "gain", "bias"}) {
    run.feed(name, test::random_normal(g.shape(g.find_leaf(name)), ++stream));
  }
  const simt::ReadCount of_x(run.leaf("x").data(), shape.elements());
  const simt::ReadCount of_dy(run.leaf("dy").data(), shape.elements());
  run.run();
  return {Reads(of_x, shape.back()), Reads(of_dy, shape.back())};
}

void check_reads(const Shape& shape, const Build& build, int of_x, int of_dy) {
  CAPTURE(shape.text());
  const auto [x, dy] = reads_of(shape, build);
  CHECK(x.least == of_x);
  CHECK(x.most == of_x);
  CHECK(dy.least == of_dy);
  CHECK(dy.most == of_dy);
}

const Build kLayerNorms = [](Graph& g, Value x, Value gain, Value bias) {
  return ops::layer_norm(g, x, {gain, bias});
};

TEST_CASE("cuda: a norm of rows reads x and dy once, gain and bias or not") {
  const Build rms = [](Graph& g, Value x, Value gain, Value bias) {
    return ops::rms_norm(g, x, {gain, bias});
  };
  const Build groups = [](Graph& g, Value x, Value gain, Value bias) {
    return ops::group_norm(g, x, {gain, bias}, {.groups = 2});
  };
  const Build ada = [](Graph& g, Value x, Value, Value) { return ops::ada_norm(g, x); };
  for (const Build& build : {kLayerNorms, rms, groups, ada}) {
    for (const Shape& shape : {Shape{70, 12}, {9, 200}, {40, 512}, {5, 1000}, {3, 8192}}) {
      check_reads(shape, build, 2, 1);
    }
  }
}

// Where a thread has fewer elements left than it reads at a time, it reads the first of them again
// in the place of others, and every thread reads what differences are taken from. The cache
// next to it answers both; most elements are read once in a pass, and none is left out.
TEST_CASE("cuda: a norm of columns reads x and dy once for its sums, once for y or dx") {
  const Build batch = [](Graph& g, Value x, Value gain, Value bias) {
    return ops::batch_norm(g, x, {gain, bias}, {bias, gain}, {});
  };
  const Build pn_v = [](Graph& g, Value x, Value gain, Value bias) {
    return ops::pn_v(g, x, {gain, bias}, {gain, {}});
  };
  for (const Build& build : {batch, pn_v}) {
    for (const Shape& shape : {Shape{4096, 36}, {3000, 13}, {3, 3, 160, 160}, {3, 3, 150, 61}}) {
      CAPTURE(shape.text());
      const auto [x, dy] = reads_of(shape, build);
      CHECK(x.least == 4);
      CHECK(x.average < 4 * 1.5);
      CHECK(dy.least == 2);
      CHECK(dy.average < 2 * 1.5);
    }
  }
}

TEST_CASE("cuda: a norm of sequences reads x and dy once, if registers hold the steps") {
  const Build instances = [](Graph& g, Value x, Value gain, Value bias) {
    return ops::instance_norm(g, x, {gain, bias}, {}, {});
  };
  check_reads({3, 20, 35}, instances, 2, 1);
  check_reads({1, 128, 5}, instances, 2, 1);
  const auto [x, dy] = reads_of({1, 129, 5}, instances);
  CHECK(x.most > 2);
  CHECK(dy.most > 1);
}

// Bytes of workspace of the backward of a norm of rows with gain and bias.
std::int64_t workspace_of(const Shape& shape) {
  Graph g;
  const auto leaf = [&](const Shape& s) {
    return g.input(fmt::format("in{}", g.size()), {DType::kF32, s});
  };
  const Value x = leaf(shape), row = leaf({shape.back()});
  const Value y = ops::layer_norm(g, x, {row, leaf({shape.back()})});
  const std::vector<Value> d =
      gradient(g, ops::sum(g, ops::mul(g, y, x)), std::vector<Value>{x, row});
  const auto backend = make_backend("cuda");
  for (int i = 0; i < g.size(); ++i) {
    if (g.node(i).op && g.node(i).op->name == std::string_view("layer_norm_backward")) {
      return backend->prepare({g, g.node(i)}).workspace;
    }
  }
  FAIL("no backward");
  return 0;
}

TEST_CASE("cuda: the backward of rows keeps little beside its outputs, however many rows") {
  constexpr std::int64_t kMiB = 1 << 20;
  for (std::int64_t width : {3, 128, 512, 768, 4099, 8192, 20000}) {
    for (std::int64_t rows : {1, 9, 1000, 10000, 32768, 1 << 20}) {
      CAPTURE(width);
      CAPTURE(rows);
      const std::int64_t bytes = workspace_of({rows, width});
      CHECK(bytes <= std::max(kMiB + 64 * width, rows * width * 4 / 32));
      CHECK(bytes <= 132 * 16 * width + 4 * rows + 256);
    }
  }
}

TEST_CASE("cuda: a row that registers do not hold is read again") {
  const auto [x, dy] = reads_of({1, 16386}, kLayerNorms);
  CHECK(x.most > 2);
  CHECK(dy.most > 1);
}

}  // namespace
}  // namespace keel::cuda
