// `keel bench recurrent` measures a training step of only recurrent layers: the cells of LSTMs and
// GRUs with any norm, beside their products and PyTorch.
#pragma once

#include "bench/step_bench.h"
#include "frontend/nn/norm.h"

namespace keel::bench {

enum class Cell { kLstm, kGru };
constexpr auto choice_words(Cell) { return std::to_array<std::string_view>({"lstm", "gru"}); }

struct RecurrentCase {
  Cell cell = Cell::kLstm;
  nn::Norm norm = nn::Norm::parse("none");  // at all sites of the cell
  std::int64_t layers = 3, width = 400, steps = 100, rows = 8;
  bool is_narrow = false;  // products take bf16 factors
};

// One step of Adam on the mean of the squares of the last layer's h; x (steps, rows, width) is an
// input, and `lr`. Outputs: loss, grad_norm.
Graph recurrent_step(const RecurrentCase& c);

// Measures that step on random x; PyTorch is measured beside it unless `library` is null.
StepBench bench_recurrent(Backend& backend, const RecurrentCase& c, int rounds,
                          LibraryPeer* library = nullptr);

}  // namespace keel::bench
