#include "frontend/nn/carry.h"

#include "src/ops/elementwise.h"
#include "src/ops/layout.h"

namespace keel::nn {

Carry::Carry(const Net& net, const std::string& name, const Shape& shape, Value begins)
    : net_(net) {
  Graph& g = net.graph;
  const TensorType rows{DType::kU8, {shape[0]}};
  check(g.type(begins) == rows, ErrorKind::kUsage, "carry {}{}: begins: expected {}, got {}",
        g.prefix(), name, rows.text(), g.type(begins).text());
  leaf_ = g.carry(g.prefix() + name, {net.dtype, shape});
  std::vector<std::int64_t> one_a_row(std::size_t(shape.rank()), 1);
  one_a_row[0] = shape[0];
  value_ =
      ops::select(g, ops::reshape(g, begins, Shape(one_a_row)), g.constant(0, net.dtype), leaf_);
}

void Carry::leave(Value next) const {
  if (net_.mode != Mode::kTrain && net_.mode != Mode::kEvaluate) return;
  net_.graph.mark_update(leaf_, next);
}

}  // namespace keel::nn
