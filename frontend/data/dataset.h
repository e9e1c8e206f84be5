// The rows of a split, and how one of them is put into a batch: a task's part of its data. All else
// (order, padding, counting, reading ahead) is done by data::DataLoader.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "frontend/data/batch_sampler.h"

namespace keel::data {

// The name of a split, and the rows that it does not hold.
struct SplitNotes {
  std::string source;  // for people: "multi30k train, data/multi30k"
  std::vector<Skipped> skipped = {};
  // The numbers that the rows have in their source; empty: 0, 1, 2, ...
  std::vector<std::int64_t> numbers = {};
};

// A row on its way into a batch. Random choices for a row, such as its augmentation, are a pure
// function of seed, epoch and row, and in evaluation of the row only.
struct RowVisit {
  std::int64_t row = 0;
  std::int64_t place = 0;                            // of the batch
  std::uint32_t epoch = 0;                           // 0 in evaluation
  std::optional<std::uint64_t> seed = std::nullopt;  // of training; nothing in evaluation
};

// Gives a batch these sizes and fills it with padding: every value is Input's padding, no
// place has a row, and there are no items. A batch that has these sizes already keeps its tensors.
void clear_batch(Batch& batch, const Sizes& sizes, const std::vector<Input>& inputs);

class Dataset {
 public:
  explicit Dataset(SplitNotes notes) : notes_(std::move(notes)) {}
  virtual ~Dataset() = default;

  const std::string& source() const { return notes_.source; }
  // Rows that the split leaves out, besides those that fill no batch.
  const std::vector<Skipped>& skipped() const { return notes_.skipped; }
  std::int64_t number(std::int64_t row) const {
    return notes_.numbers.empty() ? row : notes_.numbers.at(std::size_t(row));
  }

  // The plan of the batches. Throws Error{kUsage} for options that leave no batch.
  virtual std::unique_ptr<BatchSampler> plan(const StreamOptions& options) const = 0;
  // The inputs of a batch of these sizes, the same as task::Network::inputs().
  virtual std::vector<Input> inputs(const Sizes& sizes) const = 0;
  // Gives a batch these sizes and inputs, and fills it with padding.
  virtual void clear(Batch& batch, const Sizes& sizes, const std::vector<Input>& inputs) const {
    clear_batch(batch, sizes, inputs);
  }
  // Writes a row into a place of padding; the sizes of the batch have room for it.
  virtual void put(Batch& batch, const RowVisit& visit) const = 0;
  // The amount that a row adds to Batch::items.
  virtual double items(std::int64_t /*row*/) const { return 1; }
  // As Stream::decoder(); the batches of the evaluation have `batch` rows or tokens.
  virtual std::shared_ptr<task::Decoder> decoder(std::int64_t /*batch*/) const { return nullptr; }

 private:
  SplitNotes notes_;
};

}  // namespace keel::data
