// What the text classifier says of lines that a user gives.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "frontend/data/text_stream.h"

namespace keel::models {

// Lines are sentences without labels; the answers are names of classes, and the scores of ranked
// answers their probabilities.
class LineDecoder : public task::Decoder {
 public:
  // The labels of `rows` do not count.
  LineDecoder(const data::LabelledRows& rows, std::vector<std::string> labels);

  std::int64_t size() const override { return std::ssize(found_); }
  const task::Batch* next() override;
  void take(const std::map<std::string, Tensor>& predictions) override;
  std::vector<std::string> answers() const override;
  std::vector<std::vector<task::RankedAnswer>> ranked(std::int64_t most) const override;

 private:
  using ScoredClass = std::pair<std::int32_t, double>;  // and the logarithm of its probability

  static std::vector<ScoredClass> ranked_classes(const Tensor& logits, std::int64_t place);
  const std::string& name_of(const ScoredClass& scored) const {
    return labels_[static_cast<std::size_t>(scored.first)];
  }

  std::vector<std::string> labels_;
  std::vector<std::vector<ScoredClass>> found_;  // of each line, the most likely class first
  std::optional<data::TextStream> stream_;       // nothing without lines
  std::int64_t step_ = 0;
  const task::Batch* batch_ = nullptr;  // the one that was given last
};

}  // namespace keel::models
