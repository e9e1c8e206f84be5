// Every kernel once, on small shapes with remainders: what a sanitizer on a GPU is given to watch.
#include <doctest/doctest.h>

#include <cmath>

#include "src/ops/conv2d.h"
#include "src/ops/dropout.h"
#include "src/ops/elementwise.h"
#include "src/ops/embedding.h"
#include "src/ops/layout.h"
#include "src/ops/loss.h"
#include "src/ops/matmul.h"
#include "src/ops/optimizer_step.h"
#include "src/ops/pool2d.h"
#include "src/ops/random_normal.h"
#include "src/ops/softmax.h"
#include "src/ops/stop_gradient.h"
#include "tests/backends/cuda/norm_step.h"

namespace keel::cuda {
namespace {

// What the ops on rows make of x (7, 13) and w (9, 5), in a scalar.
Value rows_loss(Graph& g, Value x, Value w) {
  const Value ids = g.constant(Tensor::of<std::int32_t>({6}, {3, 0, 18, 3, 4, 1}));
  const Value wide = ops::concat(g, {x, ops::slice(g, x, {0, 2}, {7, 5})}, 1);
  const Value padded = ops::pad(g, ops::transpose(g, wide, {1, 0}), {1, 0}, {0, 2});
  const Value product = ops::gelu(g, ops::matmul(g, padded, w));
  const Value one = g.constant(Tensor::of<std::int32_t>({}, {1}));
  const RandomKey key{one, one};
  const Value noise = ops::random_normal(g, g.type(product), key, 6);
  const Value dropped = ops::dropout(g, ops::add(g, product, noise), key, 0.3, 5);
  const Value soft = ops::mul(g, ops::softmax(g, dropped), ops::log_softmax(g, dropped));
  const Value looked_up = ops::embedding(g, soft, ids);
  const Value labels = g.constant(Tensor::of<std::int32_t>({6}, {0, 1, 2, 3, 4, 0}));
  g.mark_output("errors", ops::classification_errors(g, looked_up, labels));
  const Value loss = ops::cross_entropy(g, looked_up, labels).mean;
  return ops::add(g, ops::mean(g, ops::max(g, looked_up, {1})), loss);
}

// The same of images x (2, 3, 7, 6) under weights w (4, 3, 3, 3).
Value images_loss(Graph& g, Value x, Value w) {
  const Value y = ops::relu(g, ops::conv2d(g, x, w));
  const Value pooled = ops::add(g, ops::max_pool2d(g, y, 2, 2), ops::avg_pool2d(g, y, 2, 2));
  const Value targets = ops::stop_gradient(g, ops::sigmoid(g, ops::neg(g, pooled)));
  return ops::bce_with_logits(g, pooled, targets).mean;
}

Value parameter(Graph& g, const std::string& name, const Shape& shape) {
  return g.parameter(name, {DType::kF32, shape}, [](Tensor& value, const Philox&) {
    value = test::random_normal(value.shape(), 4).to(DType::kF32);
  });
}

// The update of the i-th parameter, each by another optimizer.
Value update(Graph& g, std::size_t i, const ops::SgdOperands& in, Value count) {
  switch (i) {
    case 0:
      return ops::adam_step(g, {in.p, in.g, in.lr, in.scale, count, in.u, in.u}, {});
    case 1:
      return ops::adagrad_step(g, {in.p, in.g, in.lr, in.scale, ops::square(g, in.u)}, {});
    case 2:
      return ops::graves_step(g, {in.p, in.g, in.lr, in.scale, ops::square(g, in.u), in.u, in.u},
                              {});
    default:
      return ops::sgd_step(g, in, {.momentum = 0.9});
  }
}

// One step of a network of all ops.
void ops_step() {
  const auto backend = make_backend("cuda");
  Variables variables(*backend, 1);
  Graph g;
  const std::vector<Value> leaves{parameter(g, "x", {7, 13}), parameter(g, "w", {9, 5}),
                                  parameter(g, "images", {2, 3, 7, 6}),
                                  parameter(g, "kernel", {4, 3, 3, 3})};
  const Value loss =
      ops::add(g, rows_loss(g, leaves[0], leaves[1]), images_loss(g, leaves[2], leaves[3]));
  const std::vector<Value> gradients = gradient(g, loss, leaves);
  const Value lr = g.constant(Tensor::scalar(0.1f));
  const Value count = g.constant(Tensor::of<std::int32_t>({}, {3}));
  const Value scale = ops::sqrt(g, ops::sum_squares(g, gradients[0]));
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const Value m = parameter(g, fmt::format("m{}", i), g.shape(leaves[i]));
    g.mark_output(fmt::format("p{}", i),
                  update(g, i, {leaves[i], gradients[i], lr, scale, m}, count));
  }
  Program program(*backend, variables, g);
  program.run();
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const Tensor p = program.fetch(fmt::format("p{}", i));
    CHECK(std::isfinite(p.at(p.elements() - 1)));
  }
}

TEST_CASE("cuda: every op and norm once") {
  ops_step();
  for (const std::string& name : norms_of_rows()) {
    norm_step(nn::Norm::parse(name), {9, 13});
    norm_step(nn::Norm::parse(name), {3, 260});
  }
  norm_step(nn::Norm::parse("instancenorm"), {2, 11, 35});
  for (const char* name : {"batchnorm", "groupnorm", "instancenorm", "powernorm", "batchrenorm"}) {
    norm_step(nn::Norm::parse(name), {2, 4, 5, 7});
  }
}

}  // namespace
}  // namespace keel::cuda
