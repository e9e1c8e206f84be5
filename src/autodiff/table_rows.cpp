#include "src/autodiff/table_rows.h"

#include "src/ops/embedding.h"
#include "src/ops/layout.h"

namespace keel {
namespace {

// How a value is read: the ids of lookups in it, and whether anything else reads it.
struct Readers {
  std::int64_t ids = 0;
  bool are_lookups = true;
};

bool is_lookup_in(const Node& node, int place) {
  return node.op == &kEmbedding && place == EmbeddingInput::kTable;
}

void note_reads(const Graph& graph, const Node& node, std::map<Value, Readers>& readers) {
  for (int place = 0; place < int(node.inputs.size()); ++place) {
    const auto read = readers.find(node.inputs[std::size_t(place)]);
    if (read == readers.end()) continue;
    if (is_lookup_in(node, place)) {
      read->second.ids += graph.shape(node.inputs[EmbeddingInput::kIds]).elements();
    } else {
      read->second.are_lookups = false;
    }
  }
}

}  // namespace

TableRows::TableRows(const Graph& graph, std::span<const Value> wrt, double least_rows_per_id) {
  std::map<Value, Readers> readers;
  for (Value v : wrt) {
    const bool is_table = graph.node(v).kind == NodeKind::kParameter && graph.shape(v).rank() == 2;
    if (is_table) readers[v];
  }
  for (int i = 0; i < graph.size(); ++i) note_reads(graph, graph.node(i), readers);
  for (const auto& [table, read] : readers) {
    const double least = least_rows_per_id * double(read.ids);
    if (read.are_lookups && double(graph.shape(table)[0]) >= least) parts_[table];
  }
}

bool TableRows::take(BackwardContext& context, const Node& node) {
  using In = EmbeddingInput;
  if (node.op != &kEmbedding) return false;
  const Value table = context.input(In::kTable);
  const auto parts = parts_.find(table);
  if (parts == parts_.end()) return false;
  const GroupIdsAttrs attrs{context.attrs().as<EmbeddingAttrs>().padding_id,
                            context.type(table).shape[0]};
  parts->second.push_back(
      ops::row_gradient(context.graph, context.input(In::kIds), context.grad(), attrs));
  return true;
}

// Each part has a row of the sum for an id, which began at 0: 0 + a + b + ... in the order of the
// parts is a + b + ... to the bit, since no sum that began at 0 is -0.
ParameterGradient TableRows::joined(Graph& graph, Value table) const {
  const std::vector<ParameterGradient>& parts = parts_.at(table);
  if (parts.empty()) return {};
  if (parts.size() == 1) return parts.front();
  const auto names = graph.scope(graph.node(table).name + ".backward");
  const std::vector<Value> rows(parts.begin(), parts.end());
  std::vector<Value> ids;
  for (const ParameterGradient& part : parts) ids.push_back(part.ids);
  return ops::row_gradient(graph, ops::concat(graph, ids, 0), ops::concat(graph, rows, 0),
                           {.vocabulary = graph.shape(table)[0]});
}

}  // namespace keel
