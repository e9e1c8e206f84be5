// The text classifier's answers to lines that a user gives.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "frontend/data/rows_decoder.h"
#include "frontend/data/text_rows.h"

namespace keel::models {

// Lines are sentences without labels. The answers are names of classes, and the scores of ranked
// answers are their probabilities.
class LineDecoder final : public data::RowsDecoder {
 public:
  // The labels of `rows` are ignored.
  LineDecoder(std::shared_ptr<const data::TextRows> rows, std::vector<std::string> labels);

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

}  // namespace keel::models
