// Every op that is no norm and not element-wise, on drawn inputs: small ones, and large ones.
#pragma once

#include <map>
#include <string_view>

#include "frontend/compare/draft.h"

namespace keel::compare {

// Puts an op into a draft, with its gradients where it has some, and marks what is to be compared.
using BuildOp = void (*)(Draft&);

// By the names of forward ops.
const std::map<std::string_view, BuildOp>& op_drafts();

// The same ops on inputs that go beyond what kernels take at a time: blocks of rows and of columns,
// tiles, registers, 4,096 rows, each with a rest; and that are hard: scores of up to 100 either
// way, equal elements, constant rows, numbers of very different sizes.
const std::map<std::string_view, BuildOp>& large_op_drafts();

using Outputs = std::vector<Value>;

// Builds y from drawn inputs, and its gradients.
template <Outputs (*kBuild)(Draft&)>
void with_gradient(Draft& d) {
  d.differentiate(kBuild(d));
}

// Of a draw of a step, for the rows of a batch from 0 on.
inline RandomKey key_of(Draft& d) { return {d.step(), d.graph.constant(Tensor(DType::kI32, {}))}; }

// Marks all outputs of the node of p.
inline void mark_all(Draft& d, Value p) {
  Outputs all;
  for (int port = 0; port < int(d.graph.node(p).outputs.size()); ++port) all.push_back(p.at(port));
  d.mark(all);
}

}  // namespace keel::compare
