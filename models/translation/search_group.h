// The sentences that a search goes through together, and what the network is asked about them.
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
  std::int64_t sentences = 0;      // as many slots there may be; a program's sizes have it
  std::int64_t beam = 0;           // rows of a sentence
  std::int64_t source_length = 0;  // the bucket of all sources

  std::int64_t rows() const { return sentences * beam; }
  // The row of the batch that asks about an open hypothesis.
  std::size_t row(std::size_t slot, std::size_t open) const {
    return slot * static_cast<std::size_t>(beam) + open;
  }
  bool is_done() const;
  // How many symbols the open hypotheses have; those of all sentences have as many.
  std::int64_t symbols() const;
};

// Makes the batches that ask the network which symbols may follow the open hypotheses of a group.
class SearchBatches {
 public:
  virtual ~SearchBatches() = default;
  // What has to be run before the group's first step; null: nothing.
  virtual const task::Batch* begin(const SearchGroup&) { return nullptr; }
  virtual const task::Batch& step(const SearchGroup& group) = 0;
};

// Has the whole network compute all positions of every hypothesis anew, at every step. It serves
// networks whose norms take statistics over a sentence's positions.
std::unique_ptr<SearchBatches> whole_batches();
// Goes on from what earlier steps have left, by the networks of search_network.h.
std::unique_ptr<SearchBatches> step_batches();

}  // namespace keel::models
