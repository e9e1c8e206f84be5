// The images that come first for captions that a user gives.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "frontend/task/rows_decoder.h"
#include "models/order_embeddings/caption_rows.h"
#include "models/order_embeddings/retrieval.h"

namespace keel::models {

// Asks the network for the points of all images and then of all captions, a caption a line. An
// answer is the numbers of the images that come first for the caption, the best first, with blanks
// between: rows of the features, counted from 0. They are kMostImages, or all if there are fewer.
// Images with equal errors come in the order of their numbers.
class ImageRanker final : public task::Decoder {
 public:
  static constexpr std::int64_t kMostImages = 10;

  // Features are f32 (images, width). Throws as caption_lines does.
  ImageRanker(std::span<const std::string> lines, const text::Vocabulary& vocabulary,
              Tensor features, RetrievalError error);

  std::int64_t size() const override { return captions_.count(); }
  const task::Batch* next() override;
  void take(const std::map<std::string, Tensor>& predictions) override;
  std::vector<std::string> answers() const override;

 private:
  // The points that the network predicts for rows, under the name of its prediction.
  class Points final : public task::RowsDecoder {
   public:
    Points(std::string name, std::shared_ptr<const CaptionRows> rows);
    std::int64_t count() const { return count_; }
    std::int64_t width() const { return width_; }
    const std::vector<float>& values() const { return values_; }

    std::int64_t size() const override { return count_; }
    std::vector<std::string> answers() const override { return {}; }

   private:
    void answer(std::int64_t row, std::int64_t place,
                const std::map<std::string, Tensor>& predictions) override;

    std::string name_;
    std::int64_t count_, width_ = 0;
    std::vector<float> values_;  // (count, width)
  };

  Points captions_, images_;
  Points* asked_ = nullptr;  // whose batch was given last
  RetrievalError error_;
};

}  // namespace keel::models
