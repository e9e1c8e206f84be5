// A classifier's answers to what a user gives: lines, or pictures.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "frontend/data/csv_table.h"
#include "frontend/task/rows_decoder.h"

namespace keel::models {

// The rows to be classified. Their labels, if they have any, are ignored.
struct UnlabelledRows {
  std::shared_ptr<const data::Dataset> rows;
  std::int64_t count = 0;
  std::int64_t batch = 256;  // rows, or tokens where the network counts in these
};

// The answers are names of classes, and the scores of ranked answers are their probabilities.
class ClassDecoder final : public task::RowsDecoder {
 public:
  ClassDecoder(const UnlabelledRows& rows, std::vector<std::string> labels);

  std::int64_t size() const override { return std::ssize(found_); }
  std::vector<std::string> answers() const override;
  std::vector<std::vector<task::RankedAnswer>> ranked(std::int64_t most) const override;

 private:
  using ScoredClass = std::pair<std::int32_t, double>;  // and the logarithm of its probability

  void answer(std::int64_t row, std::int64_t place,
              const std::map<std::string, Tensor>& predictions) override;
  static std::vector<ScoredClass> ranked_classes(const Tensor& logits, std::int64_t place);
  const std::string& name_of(const ScoredClass& scored) const {
    return labels_[static_cast<std::size_t>(scored.first)];
  }

  std::vector<std::string> labels_;
  std::vector<std::vector<ScoredClass>> found_;  // of each line, the most likely class first
};

// Names the class of each line of a user, which is a row of the table; the first line has the
// number `first`. Throws as CsvTable::read_lines.
std::unique_ptr<task::Decoder> classify(const data::CsvTable& table,
                                        std::span<const std::string> lines, std::int64_t first);

}  // namespace keel::models
