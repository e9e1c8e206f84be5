// Questions on passages as batches.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "frontend/data/row_batches.h"
#include "frontend/data/text_stream.h"
#include "models/attentive_reader/numbers.h"

namespace keel::models {

using NumberedQuestions = std::vector<NumberedQuestion>;

struct QuestionBatchOptions {
  std::int64_t batch = 64;
  std::optional<std::uint64_t> shuffle = std::nullopt;  // the seed, in training
};

// Sizes are {rows, passage length, question length}; the values of a batch, in this order:
//   passage        i32 (rows, passage length)    tokens, then the same from the front again
//   passage_mask   u8 (rows, passage length)     1 for the tokens of the first time
//   question       i32 (rows, question length)   likewise
//   question_mask  u8 (rows, question length)
//   answer         i32 (rows)                    -1 in a row of padding
// Lengths are buckets (data::bucket_of, multiples of 16 and 8). A sequence is repeated to fill them
// (Cooijmans et al. 2016), so that statistics over padding, where a norm is told to take them, are
// of text. A row of padding has zeros.
//
// Entities get their numbers anew whenever a row is read, the same in passage, question and answer:
// in training by (seed, epoch, row), in evaluation by the row.
class QuestionStream final : public task::Stream {
 public:
  // Throws Error{kUsage} as data::RowBatches.
  QuestionStream(data::StreamNotes notes, std::shared_ptr<const NumberedQuestions> questions,
                 std::shared_ptr<const ReaderNumbers> numbers, const QuestionBatchOptions& options);
  QuestionStream(const QuestionStream&) = delete;  // its plan asks it for lengths

  const std::string& source() const override { return notes_.source; }
  std::int64_t rows() const override { return batches_.rows(); }
  std::int64_t steps(std::uint32_t) override { return batches_.steps(); }
  double items(std::uint32_t epoch, std::int64_t step) override {
    return double(batches_.at(epoch, step).size());
  }
  const task::Batch& at(std::uint32_t epoch, std::int64_t step) override;
  const task::Batch& pick(std::span<const std::int64_t> rows) override;
  std::vector<task::Sizes> shapes() const override;
  std::vector<task::LeftOut> left_out() const override;

  // The numbers that the entities of a row have in an epoch.
  std::vector<std::int32_t> entities_of(std::uint32_t epoch, std::int64_t row) const;

 private:
  struct Lengths {
    std::int64_t passage = 0, question = 0;
    friend auto operator<=>(const Lengths&, const Lengths&) = default;
  };
  const NumberedQuestion& question(std::int64_t row) const {
    return (*questions_)[std::size_t(row)];
  }
  // The buckets of a question.
  Lengths lengths_of(std::int64_t row) const;
  const task::Batch& make(std::span<const std::int64_t> rows, std::uint32_t epoch,
                          std::int64_t capacity);
  void resize(const task::Sizes& sizes);
  void put(std::int64_t place, std::int64_t row, std::uint32_t epoch);

  data::StreamNotes notes_;
  std::shared_ptr<const NumberedQuestions> questions_;
  std::shared_ptr<const ReaderNumbers> numbers_;
  QuestionBatchOptions options_;
  data::RowBatches batches_;
  task::Batch batch_;
};

std::vector<task::Input> question_inputs(const task::Sizes& sizes);

}  // namespace keel::models
