// The data of the miniatures. They are drawn from a seed and labelled by a random network, the
// teacher, or by the class that they were drawn from.
//
// All have columns x (rows, features) f32 and label (rows) i32. The rows to validate on are those
// to test on.
#pragma once

#include "frontend/data/table_rows.h"
#include "frontend/task/batch.h"
#include "src/core/choice.h"

namespace keel::study {

struct MiniData {
  std::uint64_t seed = 0;
  std::int64_t train_rows = 0, test_rows = 0, features = 32, classes = 10;
};

// The order in which training rows make batches.
enum class RowOrder {
  kEpochs,  // epochs of shuffled batches
  kDrawn,   // each row drawn from all rows, with replacement
  kStream,  // the next rows; they come once, and a training must not need more
};
constexpr auto choice_words(RowOrder) {
  return std::to_array<std::string_view>({"epochs", "drawn", "stream"});
}
// Splits whose training rows come in this order where they would be shuffled.
std::unique_ptr<task::Splits> in_order(std::unique_ptr<data::TableSplits> splits, RowOrder order);

// The columns as inputs of a network.
std::vector<data::TableColumn> mini_columns(std::int64_t features);

// x = n exp(m / 2), n ~ N(0, 1) each, m ~ N(0, 1) one a row;  label = argmax(tanh(x T1) T2),
// T1 (features, 48) ~ N(0, 4 / features), T2 (48, classes) ~ N(0, 4 / 48).
std::unique_ptr<data::TableSplits> vectors(const MiniData& sizes);

// x = 0.35 m + n, n ~ N(0, 1) each; a class has three means m ~ N(0, 1) each, drawn like the class
// with equal shares;  label = the class.
std::unique_ptr<data::TableSplits> mixture(const MiniData& sizes);

// Sentences of 16 tokens, one after another: 200 word vectors E and 20 topic vectors K ~ N(0, 1),
// words by Zipf's law 1 / (rank + 2); a sentence has one topic k and one scale s = exp(spread n),
// n ~ N(0, 1).  x = E[w] + s K[k];  label = argmax(tanh((E[w] + K[k]) T1) T2),
// T1 ~ N(0, 1.5^2 / features), T2 ~ N(0, 4 / 48).
// Throws Error{kUsage} unless both parts are whole sentences.
std::unique_ptr<data::TableSplits> sentences(const MiniData& sizes, double spread);

}  // namespace keel::study
