// Embedding lookup:  y[i] = table[ids[i]].
//
//   table (vocabulary, width) floating   ids (...) i32   y (..., width)
// backward (Exact): dtable[v] = sum over i with ids[i] = v of dy[i], added in the order of i.
// Rows of id == padding_id are 0 and give no gradient (-1: no such id). An id outside the table
// gives a row of NaN, so that the run stops with the node's name, and no gradient.
#pragma once

#include "src/graph/graph.h"

namespace keel {

// Inputs have these places.
struct EmbeddingInput {
  enum Place : int { kTable, kIds };
};
struct EmbeddingBackwardInput {
  enum Place : int { kIds, kDy };
};

struct EmbeddingAttrs {
  std::int64_t padding_id = -1;
  static constexpr auto fields() {
    return std::tuple{field("padding_id", &EmbeddingAttrs::padding_id)};
  }
};

struct EmbeddingBackwardAttrs {
  std::int64_t padding_id = -1, vocabulary = 0;
  static constexpr auto fields() {
    return std::tuple{field("padding_id", &EmbeddingBackwardAttrs::padding_id),
                      field("vocabulary", &EmbeddingBackwardAttrs::vocabulary)};
  }
};

extern const OpInfo kEmbedding;
extern const OpInfo kEmbeddingBackward;  // (ids, dy) -> dtable

namespace ops {

Value embedding(Graph& g, Value table, Value ids, std::int64_t padding_id = -1);

}  // namespace ops
}  // namespace keel
