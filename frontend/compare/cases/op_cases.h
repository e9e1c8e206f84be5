// The cases of every op that is no norm and not element-wise: graphs of it on sampled inputs. What
// compares, tests or measures ops reads them here.
#pragma once

#include <map>
#include <string_view>

#include "frontend/compare/cases/case_builder.h"

namespace keel::compare {

// Adds an op to a graph, with its gradients if it has any, and marks the values to be compared.
using BuildOp = void (*)(CaseBuilder&);

struct OpCases {
  // All kernels of the op, in no time.
  BuildOp small;
  // Inputs that exceed what kernels handle at a time (blocks of rows and of columns, tiles,
  // registers, 4,096 rows), each with a remainder, and that are hard: scores from -100 to 100,
  // equal elements, constant rows, numbers of very different sizes.
  BuildOp large;
  // Rows, columns or tensors of n elements, for an op that may go wrong where a register, a tile or
  // a block ends. Null: there is nothing of the kind, or the small and large cases have it.
  void (*sized)(CaseBuilder&, std::int64_t n) = nullptr;
};
using OpCaseTable = std::map<std::string_view, OpCases>;

// The tables of the families, by the names of forward ops.
const OpCaseTable& attention_cases();
const OpCaseTable& column_cases();
const OpCaseTable& layout_cases();
const OpCaseTable& loss_cases();
const OpCaseTable& product_cases();
const OpCaseTable& random_cases();
const OpCaseTable& recurrent_cases();
const OpCaseTable& update_cases();
// All of them, and what add_case added.
const OpCaseTable& op_cases();

// Adds the cases of an op from outside (src/ops/op_table.h).
void add_case(std::string_view op, BuildOp build);

using Outputs = std::vector<Value>;

// Cases that compare y and the gradients of y with respect to all sampled inputs.
template <Outputs (*kBuild)(CaseBuilder&)>
void with_gradient(CaseBuilder& d) {
  d.differentiate(kBuild(d));
}
template <Outputs (*kBuild)(CaseBuilder&, std::int64_t)>
void with_gradient(CaseBuilder& d, std::int64_t n) {
  d.differentiate(kBuild(d, n));
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

// More rows than 4,096: several blocks, the last of which is short, of a register and a rest.
inline constexpr std::int64_t kManyRows = 4133;
// So many rows of n elements that a case takes no time.
inline std::int64_t rows_of(std::int64_t n) { return n > 1000 ? 2 : 7; }

inline Value scores(CaseBuilder& d, const Shape& shape) {
  return d.floats(Sampled::kScores, shape);
}
inline Value mixed(CaseBuilder& d, const Shape& shape) { return d.floats(Sampled::kMixed, shape); }
// Rows of many registers and a rest, with hard moments of every kind.
inline Value hostile(CaseBuilder& d) { return d.floats(Sampled::kHostileRows, {13, 1061}); }

}  // namespace keel::compare
