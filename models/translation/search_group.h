// The sentences that a search handles together, and its questions to the network.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "frontend/task/batch.h"
#include "models/translation/beam_search.h"

namespace keel::models {

// A sentence that is being translated.
struct SearchSlot {
  std::size_t sentence = 0;              // its number
  std::span<const std::int32_t> source;  // its symbols, kEnd after them
  BeamSearch search;
};

struct SearchGroup {
  std::vector<SearchSlot> slots = {};
  std::int64_t sentences = 0;      // the most slots there may be; a program's sizes have it
  std::int64_t beam = 0;           // rows of a sentence
  std::int64_t source_length = 0;  // the bucket of all sources

  std::int64_t rows() const { return sentences * beam; }
  // The row of the batch that asks about an open hypothesis.
  std::size_t row(std::size_t slot, std::size_t open) const {
    return slot * static_cast<std::size_t>(beam) + open;
  }
  bool is_done() const;
  // The number of symbols of every open hypothesis, the same for all sentences.
  std::int64_t symbols() const;
};

// Makes the batches that ask the network for the next symbols of a group's open hypotheses.
class SearchBatches {
 public:
  virtual ~SearchBatches() = default;
  // The batch to run before the group's first step; null: none.
  virtual const task::Batch* begin(const SearchGroup&) { return nullptr; }
  virtual const task::Batch& step(const SearchGroup& group) = 0;
};

// At every step the whole network computes all positions of every hypothesis again. For networks
// whose norms take statistics over a sentence's positions.
std::unique_ptr<SearchBatches> whole_batches();
// Continues from the values of earlier steps, with the networks of search_network.h.
std::unique_ptr<SearchBatches> step_batches();

}  // namespace keel::models
