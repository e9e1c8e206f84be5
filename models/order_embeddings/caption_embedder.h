// Embeddings of captions that a user gives.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "frontend/task/rows_decoder.h"
#include "models/order_embeddings/caption_rows.h"

namespace keel::models {

// Captions of a user as rows, one a line, with zeros for features of that width. Throws
// Error{kBadInput} that names the line, for bytes that are not UTF-8 and too many words.
std::shared_ptr<const CaptionRows> caption_lines(std::span<const std::string> lines,
                                                 const text::Vocabulary& vocabulary,
                                                 std::int64_t feature_width);

// A caption a line, in the form of the training data. An answer is the embedding, numbers of
// six digits separated by blanks. The distance of caption s from an image f is sum_k max(0,
// s_k - f_k)^2. A caption whose embedding is nowhere above another's says no more than that
// one.
class CaptionEmbedder final : public task::RowsDecoder {
 public:
  // Throws as caption_lines does.
  CaptionEmbedder(std::span<const std::string> lines, const text::Vocabulary& vocabulary,
                  std::int64_t feature_width);

  std::int64_t size() const override { return std::ssize(answers_); }
  std::vector<std::string> answers() const override { return answers_; }

 private:
  void answer(std::int64_t row, std::int64_t place,
              const std::map<std::string, Tensor>& predictions) override;

  std::vector<std::string> answers_;
};

}  // namespace keel::models
