#include "models/order_embeddings/corpus.h"

#include <algorithm>
#include <cmath>

namespace keel::models {

void scale_to_unit_length(Tensor& rows) {
  const auto width = static_cast<std::size_t>(rows.shape()[1]);
  const std::span<float> all = rows.as<float>();
  for (std::size_t first = 0; first < all.size(); first += width) {
    const std::span<float> row = all.subspan(first, width);
    double squares = 0;
    for (const float x : row) squares += double(x) * x;
    if (squares == 0) continue;
    const double length = std::sqrt(squares);
    for (float& x : row) x = float(x / length);
  }
}

void keep_first_images(DescribedImages& images, std::int64_t count) {
  if (count == 0 || count >= images.images()) return;
  const std::int64_t width = images.features.shape()[1];
  Tensor features(DType::kF32, {count, width});
  std::ranges::copy(images.features.as<float>().first(std::size_t(count * width)),
                    features.as<float>().begin());
  images.features = std::move(features);
  images.captions.resize(std::size_t(count * kCaptionsAnImage));
}

}  // namespace keel::models
