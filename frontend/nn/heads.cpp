#include "frontend/nn/heads.h"

#include "src/ops/layout.h"
#include "src/ops/norm/scale_norm.h"
#include "src/ops/reduce.h"

namespace keel::nn {
namespace {

// The width of a head of x.
std::int64_t head_width(const Shape& x, std::int64_t heads) {
  check(x.rank() == 3 && heads >= 1 && x[2] % heads == 0, ErrorKind::kUsage,
        "[heads] x: expected (batch, length, a multiple of {}), got {}", heads, x.text());
  return x[2] / heads;
}

// of_rows(rows) of the heads of x, each a row, in the shape of x.
template <class OfRows>
Value each_head(Graph& g, Value x, std::int64_t heads, const OfRows& of_rows) {
  const Shape shape = g.shape(x);
  const std::int64_t width = head_width(shape, heads);
  const Value rows = ops::reshape(g, x, {shape[0] * shape[1] * heads, width});
  return ops::reshape(g, of_rows(rows), shape);
}

}  // namespace

Value norm_heads(Net& net, const std::string& name, Value x, std::int64_t heads, const Norm& norm) {
  return each_head(net.graph, x, heads, [&](Value rows) { return norm(net, name, rows); });
}

Value unit_heads(Net& net, Value x, std::int64_t heads) {
  return each_head(net.graph, x, heads,
                   [&](Value rows) { return ops::unit_rows(net.graph, rows); });
}

Value repeat_heads(Net& net, Value x, std::int64_t heads, std::int64_t times) {
  Graph& g = net.graph;
  const Shape shape = g.shape(x);
  const std::int64_t width = head_width(shape, heads), batch = shape[0], length = shape[1];
  check(times >= 1, ErrorKind::kUsage, "[heads] times: expected 1 or more, got {}", times);
  const Value one = ops::reshape(g, x, {batch, length, heads, 1, width});
  const Value many = ops::broadcast_to(g, one, {batch, length, heads, times, width});
  return ops::reshape(g, many, {batch, length, heads * times * width});
}

}  // namespace keel::nn
