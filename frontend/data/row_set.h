// The rows of a split, and how one of them is put into a batch: what a task says of its data. All
// else (order, padding, counting, reading ahead) is the business of data::PlannedStream.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "frontend/data/batch_plan.h"

namespace keel::data {

// What a split is called, and the rows that it does not hold.
struct SplitNotes {
  std::string source;  // for people: "multi30k train, data/multi30k"
  std::vector<task::LeftOut> left_out = {};
};

// A row on its way into a batch. What is drawn for a row, such as its augmentation, is a pure
// function of seed, epoch and row, and in evaluation of the row alone.
struct RowVisit {
  std::int64_t row = 0;
  std::int64_t place = 0;                            // of the batch
  std::uint32_t epoch = 0;                           // 0 in evaluation
  std::optional<std::uint64_t> seed = std::nullopt;  // of training; nothing in evaluation
};

// Makes a batch one of these sizes with nothing but padding in it: every value is task::Input's, no
// place has a row, and there are no items. The tensors of a batch of the same sizes are kept.
void clear_batch(task::Batch& batch, const task::Sizes& sizes,
                 const std::vector<task::Input>& inputs);

class RowSet {
 public:
  explicit RowSet(SplitNotes notes) : notes_(std::move(notes)) {}
  virtual ~RowSet() = default;

  const std::string& source() const { return notes_.source; }
  // What training on the split leaves out, besides rows that fill no batch.
  const std::vector<task::LeftOut>& left_out() const { return notes_.left_out; }

  // Which rows go into which batch. Throws Error{kUsage} for options that leave no batch.
  virtual std::unique_ptr<BatchPlan> plan(const task::StreamOptions& options) const = 0;
  // The inputs of a batch of these sizes, as task::Network::inputs() has them.
  virtual std::vector<task::Input> inputs(const task::Sizes& sizes) const = 0;
  // Makes a batch one of these sizes, whose inputs these are, with nothing but padding in it.
  virtual void clear(task::Batch& batch, const task::Sizes& sizes,
                     const std::vector<task::Input>& inputs) const {
    clear_batch(batch, sizes, inputs);
  }
  // Writes a row into a place of padding; the sizes of the batch have room for it.
  virtual void put(task::Batch& batch, const RowVisit& visit) const = 0;
  // What a row adds to task::Batch::items.
  virtual double items(std::int64_t /*row*/) const { return 1; }
  // As task::Stream::decoder(); the batches of the evaluation have `batch` rows or tokens.
  virtual std::unique_ptr<task::Decoder> decoder(std::int64_t /*batch*/) const { return nullptr; }

 private:
  SplitNotes notes_;
};

}  // namespace keel::data
