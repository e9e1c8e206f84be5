#include "models/order_embeddings/image_ranker.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "models/order_embeddings/caption_embedder.h"

namespace keel::models {
namespace {

constexpr std::int64_t kRowsTogether = 64;

// Images without words.
std::shared_ptr<const CaptionRows> image_rows(Tensor features, const text::Vocabulary& vocabulary) {
  const std::int64_t images = features.shape()[0];
  auto rows = std::make_shared<CaptionRows>(
      data::SplitNotes{"images"}, std::move(features),
      CaptionRows::Options{.each = 1, .fold = std::max<std::int64_t>(images, 1)});
  for (std::int64_t i = 0; i < images; ++i) rows->add("", vocabulary, "images");
  return rows;
}

}  // namespace

ImageRanker::Points::Points(std::string name, std::shared_ptr<const CaptionRows> rows)
    : name_(std::move(name)), count_(rows->captions()) {
  if (count_ > 0) ask(std::move(rows), kRowsTogether);
}

void ImageRanker::Points::answer(std::int64_t row, std::int64_t place,
                                 const std::map<std::string, Tensor>& predictions) {
  const Tensor& points = predictions.at(name_);
  width_ = points.shape()[1];
  values_.resize(std::size_t(count_ * width_));
  std::ranges::copy(points.as<float>().subspan(std::size_t(place * width_), std::size_t(width_)),
                    values_.begin() + row * width_);
}

ImageRanker::ImageRanker(std::span<const std::string> lines, const text::Vocabulary& vocabulary,
                         Tensor features, RetrievalError error)
    : captions_("caption", caption_lines(lines, vocabulary, features.shape()[1])),
      images_("image", image_rows(std::move(features), vocabulary)),
      error_(error) {}

const task::Batch* ImageRanker::next() {
  for (Points* points : {&images_, &captions_}) {
    if (const task::Batch* batch = points->next()) {
      asked_ = points;
      return batch;
    }
  }
  return nullptr;
}

void ImageRanker::take(const std::map<std::string, Tensor>& predictions) {
  asked_->take(predictions);
}

std::vector<std::string> ImageRanker::answers() const {
  std::vector<std::string> answers;
  for (std::int64_t caption = 0; caption < captions_.count(); ++caption) {
    const std::span<const float> point =
        std::span(captions_.values())
            .subspan(std::size_t(caption * captions_.width()), std::size_t(captions_.width()));
    answers.push_back(fmt::format(
        "{}", fmt::join(first_images(point, images_.values(), error_, kMostImages), " ")));
  }
  return answers;
}

}  // namespace keel::models
