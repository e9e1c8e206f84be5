// The sum of one lookup per place, each in a table of its own:
// y[i] = sum over k of tables[k, ids[i, k] - first], added in the order of k.
//
//   tables (places, vocabulary, width) floating   ids (rows, places) i32   y (rows, width)
// An id outside its table gives a row of NaN, as in embedding. There is no backward.
//
// With tables[k] = E[first : first + vocabulary] W[k], the result is x W for x = concat of
// E[ids[i, k]]: the products of a layer with the rows of a table are computed once and shared by
// many inputs (Chen & Manning 2014, 3.5).
#pragma once

#include "src/graph/graph.h"

namespace keel {

// Inputs have these places.
struct EmbeddingBagInput {
  enum Place : int { kTables, kIds };
};

struct EmbeddingBagAttrs {
  std::int64_t first = 0;  // the id of the first row of every table
  static constexpr auto fields() { return std::tuple{field("first", &EmbeddingBagAttrs::first)}; }
};

// Sizes of one lookup.
struct EmbeddingBagSizes {
  std::int64_t rows, places, vocabulary, width;
};
EmbeddingBagSizes embedding_bag_sizes(const Shape& tables, const Shape& ids);

extern const OpInfo kEmbeddingBag;

namespace ops {

Value embedding_bag(Graph& g, Value tables, Value ids, std::int64_t first = 0);

}  // namespace ops
}  // namespace keel
