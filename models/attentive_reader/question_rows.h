// Questions on passages as batches.
#pragma once

#include <memory>
#include <vector>

#include "frontend/data/data_loader.h"
#include "frontend/task/batch.h"
#include "models/attentive_reader/numbers.h"

namespace keel::models {

// Questions with numbers for their tokens, in data::RowBatches: sizes are
// {rows, passage length, question length}, and the values of a batch, in this order:
//   passage        i32 (rows, passage length)    tokens, then the same from the front again
//   passage_mask   u8 (rows, passage length)     1 for the tokens of the first time
//   question       i32 (rows, question length)   likewise
//   question_mask  u8 (rows, question length)
//   answer         i32 (rows)                    -1 in a row of padding
// Lengths are buckets (data::bucket_of, multiples of 16 and 8). A sequence is repeated to fill its
// bucket (Cooijmans et al. 2016), so that a norm whose statistics include padding sees text there.
// A row of padding has zeros.
//
// Entities get new numbers whenever a row is read, the same in passage, question and answer. They
// are drawn by (seed, epoch, row) in training and by the row in evaluation.
class QuestionRows final : public data::Dataset {
 public:
  QuestionRows(data::SplitNotes notes, std::vector<NumberedQuestion> questions,
               std::shared_ptr<const ReaderNumbers> numbers)
      : Dataset(std::move(notes)), questions_(std::move(questions)), numbers_(std::move(numbers)) {}

  const NumberedQuestion& question(std::int64_t row) const { return questions_[std::size_t(row)]; }
  // The numbers that the entities of a row have.
  std::vector<std::int32_t> entities_of(const data::RowVisit& visit) const;

  std::unique_ptr<data::BatchSampler> plan(const task::StreamOptions& options) const override;
  std::vector<task::Input> inputs(const task::Sizes& sizes) const override;
  void put(task::Batch& batch, const data::RowVisit& visit) const override;

 private:
  // The buckets of a question.
  task::Sizes lengths_of(std::int64_t row) const;

  std::vector<NumberedQuestion> questions_;
  std::shared_ptr<const ReaderNumbers> numbers_;
};

std::vector<task::Input> question_inputs(const task::Sizes& sizes);

}  // namespace keel::models
