#include "models/order_embeddings/synthetic.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>

#include "frontend/text/lines.h"
#include "frontend/text/vocabulary.h"
#include "models/order_embeddings/corpus.h"
#include "src/core/rng.h"

namespace keel::models {
namespace {

constexpr std::uint64_t kSyntheticKey = 20140501;
constexpr std::uint32_t kWordNumbers = stream_of("synthetic.word");
constexpr std::uint32_t kSyntheticNoise = stream_of("synthetic.noise");
constexpr double kSyntheticNoisePart = 0.5;

// The words that at least two of the captions first, first + 1, ... of an image have.
std::vector<std::string_view> shared_words(const std::vector<std::string>& captions,
                                           std::int64_t image) {
  std::map<std::string_view, int> counts;
  for (std::int64_t k = 0; k < kCaptionsAnImage; ++k) {
    const std::string& caption = captions[std::size_t(image * kCaptionsAnImage + k)];
    const std::vector<std::string_view> words = text::words_of(caption);
    for (const std::string_view word : std::set(words.begin(), words.end())) ++counts[word];
  }
  std::vector<std::string_view> shared;
  for (const auto& [word, count] : counts) {
    if (count >= 2) shared.push_back(word);
  }
  return shared;
}

// r_w for every word w; each is drawn once.
class WordVectors {
 public:
  const std::vector<double>& of(std::string_view word) {
    const auto [place, is_new] = vectors_.try_emplace(word);
    if (is_new) {
      const Philox random(kSyntheticKey, kWordNumbers, stream_of(word));
      for (std::uint64_t k = 0; k < kSyntheticWidth; ++k) place->second.push_back(random.normal(k));
    }
    return place->second;
  }

 private:
  std::map<std::string_view, std::vector<double>> vectors_;
};

void put_row(std::vector<double>& sum, std::int64_t image, std::span<float> row) {
  double squares = 0;
  for (const double x : sum) squares += x * x;
  // An image of which no two captions share a word is only noise.
  const double size = squares > 0 ? std::sqrt(squares / double(sum.size())) : 1;
  const Philox noise(kSyntheticKey, kSyntheticNoise, std::uint32_t(image));
  for (std::size_t k = 0; k < sum.size(); ++k) {
    row[k] = float(std::max(sum[k] + kSyntheticNoisePart * size * noise.normal(k), 0.0));
  }
}

}  // namespace

Tensor synthetic_features(const std::vector<std::string>& captions) {
  const std::int64_t images = std::ssize(captions) / kCaptionsAnImage;
  std::vector<std::vector<std::string_view>> shared;
  text::WordCounts having;
  for (std::int64_t i = 0; i < images; ++i) {
    shared.push_back(shared_words(captions, i));
    for (const std::string_view word : shared.back()) ++having[std::string(word)];
  }
  Tensor features(DType::kF32, {images, kSyntheticWidth});
  WordVectors vectors;
  std::vector<double> sum(std::size_t{kSyntheticWidth});
  for (std::int64_t i = 0; i < images; ++i) {
    std::ranges::fill(sum, 0.0);
    for (const std::string_view word : shared[std::size_t(i)]) {
      const std::vector<double>& r = vectors.of(word);
      const double weight = std::log(2.0 * double(images) / double(having.find(word)->second));
      for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += weight * r[k];
    }
    put_row(sum, i,
            features.as<float>().subspan(std::size_t(i * kSyntheticWidth), kSyntheticWidth));
  }
  scale_to_unit_length(features);
  return features;
}

}  // namespace keel::models
