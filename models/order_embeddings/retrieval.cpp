#include "models/order_embeddings/retrieval.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "models/order_embeddings/corpus.h"
#include "src/core/error.h"

namespace keel::models {
namespace {

constexpr std::array<std::int64_t, 3> kRecallAt = {1, 5, 10};

// The sum over k of term(caption_k, image_k), in so many partial sums, which a compiler keeps in
// registers of several floats: a fold has millions of pairs.
template <class Term>
float sum_of_terms(const float* caption, const float* image, std::int64_t width, const Term& term) {
  constexpr std::int64_t kSums = 16;
  float sums[kSums] = {};
  std::int64_t k = 0;
  for (; k + kSums <= width; k += kSums) {
    for (std::int64_t i = 0; i < kSums; ++i) sums[i] += term(caption[k + i], image[k + i]);
  }
  for (; k < width; ++k) sums[k % kSums] += term(caption[k], image[k]);
  double total = 0;
  for (const float sum : sums) total += sum;
  return float(total);
}

// max(0, d)^2 as ((d + |d|) / 2)^2, exactly the same without a branch, which would be taken at
// random; a NaN stays.
struct SquaredExcess {
  float operator()(float caption, float image) const {
    const float d = caption - image, above = 0.5f * (d + std::abs(d));
    return above * above;
  }
};

struct Product {
  float operator()(float caption, float image) const { return caption * image; }
};

// A NaN becomes infinity: a network that has diverged must not look as if it found everything.
float error_between(const float* caption, const float* image, std::int64_t width,
                    RetrievalError error) {
  const float e = error == RetrievalError::kOrder
                      ? sum_of_terms(caption, image, width, SquaredExcess())
                      : -sum_of_terms(caption, image, width, Product());
  return std::isnan(e) ? std::numeric_limits<float>::infinity() : e;
}

// Where a candidate stands: by its error, and among equals by its place.
struct Standing {
  float error;
  std::int64_t place;
  friend bool operator<(const Standing& a, const Standing& b) {
    return a.error != b.error ? a.error < b.error : a.place < b.place;
  }
};

// The rank of the best of an image's captions, whose errors are every `stride`-th from `offset` on.
std::int64_t rank_of_best(const std::vector<float>& errors, std::int64_t stride, std::int64_t image,
                          std::int64_t offset) {
  const auto standing = [&](std::int64_t caption) {
    return Standing{errors[std::size_t(caption * stride + offset)], caption};
  };
  const std::int64_t first = image * kCaptionsAnImage;
  Standing best = standing(first);
  for (std::int64_t i = first + 1; i < first + kCaptionsAnImage; ++i) {
    best = std::min(best, standing(i));
  }
  std::int64_t rank = 1;
  for (std::int64_t i = 0; i < std::ssize(errors) / stride; ++i) rank += standing(i) < best;
  return rank;
}

std::int64_t middle_of(std::vector<std::int64_t>& ranks) {
  const auto middle = ranks.begin() + (std::ssize(ranks) - 1) / 2;
  std::ranges::nth_element(ranks, middle);
  return *middle;
}

}  // namespace

RetrievalRanks rank_fold(const RetrievalFold& fold, RetrievalError error) {
  // The number of images that are compared with a caption while it is in the first-level cache.
  constexpr std::int64_t kTogether = 16;
  const std::int64_t width = fold.width, images = std::ssize(fold.images) / width;
  const std::int64_t captions = std::ssize(fold.captions) / width;
  const auto between = [&](std::int64_t caption, std::int64_t image) {
    return error_between(fold.captions.data() + caption * width, fold.images.data() + image * width,
                         width, error);
  };
  std::vector<float> own;
  for (std::int64_t i = 0; i < captions; ++i) own.push_back(between(i, i / kCaptionsAnImage));
  RetrievalRanks ranks{std::vector<std::int64_t>(std::size_t(captions), 1), {}};
  std::vector<float> errors(std::size_t(kTogether * captions));  // of a caption side by side
  for (std::int64_t first = 0; first < images; first += kTogether) {
    const std::int64_t end = std::min(first + kTogether, images);
    for (std::int64_t i = 0; i < captions; ++i) {
      const Standing right{own[std::size_t(i)], i / kCaptionsAnImage};
      for (std::int64_t j = first; j < end; ++j) {
        const float e = between(i, j);
        errors[std::size_t(i * kTogether + j - first)] = e;
        ranks.of_images[std::size_t(i)] += Standing{e, j} < right;
      }
    }
    for (std::int64_t j = first; j < end; ++j) {
      ranks.of_captions.push_back(rank_of_best(errors, kTogether, j, j - first));
    }
  }
  return ranks;
}

std::vector<std::int64_t> first_images(std::span<const float> caption,
                                       std::span<const float> images, RetrievalError error,
                                       std::int64_t most) {
  const auto width = std::ssize(caption), count = std::ssize(images) / width;
  std::vector<Standing> standings;
  for (std::int64_t i = 0; i < count; ++i) {
    standings.push_back(
        {error_between(caption.data(), images.data() + i * width, width, error), i});
  }
  const auto end = standings.begin() + std::min<std::int64_t>(most, count);
  std::partial_sort(standings.begin(), end, standings.end());
  std::vector<std::int64_t> places;
  for (auto standing = standings.begin(); standing != end; ++standing) {
    places.push_back(standing->place);
  }
  return places;
}

std::vector<task::MetricInfo> RetrievalScorer::metrics() {
  std::vector<task::MetricInfo> infos{
      {.name = "image_recall", .unit = "%", .higher_is_better = true}};
  for (const std::string which : {"image", "caption"}) {
    for (const std::int64_t k : kRecallAt) {
      infos.push_back(
          {.name = fmt::format("{}_r{}", which, k), .unit = "%", .higher_is_better = true});
    }
    infos.push_back({.name = which + "_mean_rank", .unit = ""});
    infos.push_back({.name = which + "_median_rank", .unit = ""});
  }
  return infos;
}

void RetrievalScorer::take(const task::Batch& batch,
                           const std::map<std::string, Tensor>& predictions) {
  const Tensor &captions = predictions.at("caption"), &images = predictions.at("image");
  const std::int64_t width = captions.shape()[1];
  for (std::size_t place = 0; place < batch.rows.size(); ++place) {
    const std::int64_t row = batch.rows[place];
    if (row < 0) continue;
    const std::int64_t image = row / kCaptionsAnImage, number = image / fold_;
    Open& open = open_[number];
    open.points.width = width;
    const auto put = [&](std::vector<float>& points, std::int64_t at, const Tensor& from) {
      const auto needed = std::size_t((at + 1) * width);
      // A point that never comes is not a number.
      if (points.size() < needed) points.resize(needed, NAN);
      const std::span<const float> all = from.as<float>();
      std::ranges::copy(all.subspan(place * std::size_t(width), std::size_t(width)),
                        points.begin() + std::ptrdiff_t(at * width));
    };
    put(open.points.captions, row - number * fold_ * kCaptionsAnImage, captions);
    put(open.points.images, image - number * fold_, images);
    if (++open.captions == fold_ * kCaptionsAnImage) {
      close(open.points);
      open_.erase(number);
    }
  }
}

void RetrievalScorer::Counts::add(std::vector<std::int64_t> all) {
  queries += std::ssize(all);
  for (const std::int64_t rank : all) {
    ranks += double(rank);
    for (std::size_t k = 0; k < kRecallAt.size(); ++k) within[k] += rank <= kRecallAt[k];
  }
  medians += double(std::ssize(all)) * double(middle_of(all));
}

void RetrievalScorer::close(const RetrievalFold& fold) {
  RetrievalRanks ranks = rank_fold(fold, error_);
  images_.add(std::move(ranks.of_images));
  captions_.add(std::move(ranks.of_captions));
}

std::map<std::string, double> RetrievalScorer::scores() {
  for (const auto& [number, open] : open_) {
    const std::int64_t images = std::ssize(open.points.images) / open.points.width;
    check(open.captions == images * kCaptionsAnImage, ErrorKind::kUsage,
          "[order_embeddings] fold {}: expected the captions of {} images, {} each, got {}", number,
          images, kCaptionsAnImage, open.captions);
    close(open.points);
  }
  open_.clear();
  std::map<std::string, double> scores;
  const auto say = [&](const std::string& which, const Counts& counts) {
    const auto queries = double(counts.queries);
    for (std::size_t k = 0; k < kRecallAt.size(); ++k) {
      scores[fmt::format("{}_r{}", which, kRecallAt[k])] = 100 * double(counts.within[k]) / queries;
    }
    scores[which + "_mean_rank"] = counts.ranks / queries;
    scores[which + "_median_rank"] = counts.medians / queries;
  };
  say("image", images_);
  say("caption", captions_);
  scores["image_recall"] = scores["image_r1"] + scores["image_r5"] + scores["image_r10"];
  return scores;
}

}  // namespace keel::models
