// Retrieval scores: captions find their images, and images find their captions.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "frontend/task/metric.h"

namespace keel::models {

// The distance of a caption from an image; both are points of the same width.
enum class RetrievalError {
  kOrder,   // sum_k max(0, caption_k - image_k)^2
  kCosine,  // - sum_k caption_k image_k
};

// Points of images and, five in a row for each, of their captions.
struct RetrievalFold {
  std::int64_t width = 0;
  std::vector<float> captions, images;
};

// The rank, from 1, of every query's own match among all candidates of the fold by error. Equal
// errors rank by their places. An error that is NaN ranks after every other.
struct RetrievalRanks {
  std::vector<std::int64_t> of_images;    // for each caption, its image's rank among the images
  std::vector<std::int64_t> of_captions;  // for each image, the rank of the best of its captions
};
// Holds as many numbers as there are captions, and no matrix of all errors.
RetrievalRanks rank_fold(const RetrievalFold& fold, RetrievalError error);

// The numbers of the images (count, width) with the least errors for a caption of that width, at
// most `most` of them, the best first; equal errors rank by their places.
std::vector<std::int64_t> first_images(std::span<const float> caption,
                                       std::span<const float> images, RetrievalError error,
                                       std::int64_t most);

// Cuts images into folds of `fold`; the last one may be smaller. Captions and images are ranked in
// their fold. Takes predictions "caption" and "image", (rows, width), of rows that are captions,
// ranks a fold when it is complete and then frees it. Scores; D is `image` for images that captions
// find and `caption` for captions that images find:
//   image_recall       R@1 + R@5 + R@10 of images, in per cent
//   D_r1, D_r5, D_r10  the share of all queries whose rank is at most 1, 5, 10, in per cent
//   D_mean_rank        the mean over all queries
//   D_median_rank      the mean over folds, weighted by queries, of the (lower) middle rank
class RetrievalScorer final : public task::Scorer {
 public:
  RetrievalScorer(std::int64_t fold, RetrievalError error) : fold_(fold), error_(error) {}

  static std::vector<task::MetricInfo> metrics();
  void take(const task::Batch& batch, const std::map<std::string, Tensor>& predictions) override;
  // Throws Error{kUsage} if captions of an image are missing.
  std::map<std::string, double> scores() override;

 private:
  struct Open {
    RetrievalFold points;
    std::int64_t captions = 0;  // received so far
  };
  struct Counts {
    std::int64_t queries = 0, within[3] = {0, 0, 0};
    double ranks = 0, medians = 0;  // each median times its queries
    void add(std::vector<std::int64_t> ranks);
  };
  void close(const RetrievalFold& fold);

  std::int64_t fold_;
  RetrievalError error_;
  std::map<std::int64_t, Open> open_;
  Counts images_, captions_;
};

}  // namespace keel::models
