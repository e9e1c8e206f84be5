// Graphs by hand: tensors, nodes, ops, and the backward of a scalar.
//
//   Graph g;
//   Value x = g.input("x", {DType::kF32, {32, 8}});
//   Value w = g.parameter("w", {DType::kF32, {8, 1}}, nn::zeros());
//   Value loss = ops::mean(g, ops::square(g, ops::matmul(g, x, w)), {0, 1});
//   std::vector<Value> dw = gradient(g, loss, std::vector{w});
//
// Errors are keel::Error, thrown while a graph is built: "[matmul] b: expected (8, _), got (9, 1)".
#pragma once

#include "src/autodiff/gradient.h"
#include "src/core/error.h"
#include "src/core/rng.h"
#include "src/core/tensor.h"
#include "src/graph/graph.h"
#include "src/ops/attention.h"
#include "src/ops/conv2d.h"
#include "src/ops/elementwise.h"
#include "src/ops/embedding.h"
#include "src/ops/layout.h"
#include "src/ops/loss.h"
#include "src/ops/matmul.h"
#include "src/ops/pool2d.h"
#include "src/ops/reduce.h"
#include "src/ops/softmax.h"
#include "src/ops/stop_gradient.h"
