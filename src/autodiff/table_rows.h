// The tables whose gradients become rows, while a graph is differentiated.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "src/ops/row_gradient.h"

namespace keel {

class TableRows {
 public:
  TableRows() = default;
  // Chooses those of `wrt` that differentiate_by_rows describes.
  TableRows(const Graph& graph, std::span<const Value> wrt, double least_rows_per_id);

  bool contains(Value v) const { return parts_.contains(v); }
  // Appends the rows of a lookup in one of the tables. Returns false for any other node.
  bool take(BackwardContext& context, const Node& node);
  // The rows of a table from all lookups that were taken; absent if there were none.
  ParameterGradient joined(Graph& graph, Value table) const;

 private:
  std::map<Value, std::vector<ParameterGradient>> parts_;  // of each table, in the order taken
};

}  // namespace keel
