// The gradient of a large table as rows: the sorted unique ids that were looked up, and for each id
// the sum of its gradient rows. n is the number of ids, V the vocabulary.
//
// group_ids   ids (...) i32, n in all
//   order  (n) i32    the places of all ids, sorted by id; equal ids stay in the order of i; those
//                     that give no gradient come last: padding, and ids outside the table
//   unique (n) i32    the ids that give a gradient, ascending, each once; V from there on
//   begins (n + 1) i32  the places of unique[g] are order[begins[g]] to order[begins[g + 1] - 1];
//                     groups from the last on are empty
// sum_groups  dy (..., width) floating, n rows   order (n) i32   begins (n + 1) i32
//   rows (n, width)   rows[g] = 0 + the sum of dy[i] over the places i of group g, added in the
//                     order of i; 0 for an empty group
// So unique and rows say what embedding_backward writes out: dtable[unique[g]] = rows[g] to the
// bit, and 0 elsewhere. Neither has a backward.
// errors: a vocabulary, or a number of ids, that int32 does not hold.
#pragma once

#include <limits>

#include "src/graph/graph.h"

namespace keel {

struct GroupIdsAttrs {
  std::int64_t padding_id = -1, vocabulary = 0;
  static constexpr auto fields() {
    return std::tuple{field("padding_id", &GroupIdsAttrs::padding_id),
                      field("vocabulary", &GroupIdsAttrs::vocabulary)};
  }
  // The id, or the vocabulary for an id that gives no gradient.
  std::int64_t key(std::int32_t id) const {
    const bool is_padding = padding_id >= 0 && id == padding_id;
    return id < 0 || id >= vocabulary || is_padding ? vocabulary : id;
  }
};

// Inputs and outputs have these places.
struct GroupIdsOutput {
  enum Place : int { kOrder, kUnique, kBegins };
};
struct SumGroupsInput {
  enum Place : int { kDy, kOrder, kBegins };
};

extern const OpInfo kGroupIds, kSumGroups;

// The gradient of a parameter: a value of its type or, for a table (V, width), its rows. Then ids
// (n) i32 ascend without repeats, V after the last; the value is (n, width), 0 where ids are V.
struct ParameterGradient : Value {
  Value ids;

  ParameterGradient() = default;
  ParameterGradient(Value value) : Value(value) {}  // NOLINT: implicit
  ParameterGradient(Value rows, Value of_ids) : Value(rows), ids(of_ids) {}
  bool is_rows() const { return ids.valid(); }
};

namespace ops {

// Returns the rows of a table's gradient, computed from the gradient dy of its lookups.
ParameterGradient row_gradient(Graph& g, Value ids, Value dy, const GroupIdsAttrs& attrs);

}  // namespace ops
}  // namespace keel
