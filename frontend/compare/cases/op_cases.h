// Every op that is no norm and not element-wise, on sampled inputs, small or large.
#pragma once

#include <map>
#include <string_view>

#include "frontend/compare/cases/case_builder.h"

namespace keel::compare {

// Adds an op to a graph, with its gradients if it has any, and marks the values to be compared.
using BuildOp = void (*)(CaseBuilder&);

// The op cases by the names of forward ops.
const std::map<std::string_view, BuildOp>& op_cases();

// The same ops on inputs that exceed what kernels handle at a time (blocks of rows and of columns,
// tiles, registers, 4,096 rows), each with a remainder, and that are hard: scores from -100 to 100,
// equal elements, constant rows, numbers of very different sizes.
const std::map<std::string_view, BuildOp>& large_op_cases();

// Adds the case, small and large, of an op from outside (src/ops/op_table.h).
void add_case(std::string_view op, BuildOp build);

using Outputs = std::vector<Value>;

// Builds y from sampled inputs, and its gradients.
template <Outputs (*kBuild)(CaseBuilder&)>
void with_gradient(CaseBuilder& d) {
  d.differentiate(kBuild(d));
}

// The key of random numbers of a step, for a batch whose first row is 0.
inline RandomKey key_of(CaseBuilder& d) {
  return {d.step(), d.graph.constant(Tensor(DType::kI32, {}))};
}

// Marks all outputs of p's node.
inline void mark_all(CaseBuilder& d, Value p) {
  Outputs all;
  for (int port = 0; port < int(d.graph.node(p).outputs.size()); ++port) all.push_back(p.at(port));
  d.mark(all);
}

}  // namespace keel::compare
