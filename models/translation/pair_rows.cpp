#include "models/translation/pair_rows.h"

#include "frontend/data/pair_batches.h"

namespace keel::models {

std::unique_ptr<data::BatchSampler> PairRows::plan(const task::StreamOptions& options) const {
  std::vector<data::PairLength> lengths;
  for (const NumberedPair& pair : pairs_) {
    lengths.push_back({std::ssize(pair.source), std::ssize(pair.target)});
  }
  return std::make_unique<data::PairBatches>(
      std::move(lengths), data::PairBatchOptions{.max_tokens = options.batch,
                                                 .sorted = !options.shuffle.has_value(),
                                                 .seed = options.shuffle.value_or(0)});
}

}  // namespace keel::models
