// Ranks of captions and images, and what is counted of them.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "models/order_embeddings/corpus.h"
#include "models/order_embeddings/image_ranker.h"
#include "models/order_embeddings/retrieval.h"
#include "tests/support/checks.h"
#include "tests/support/graph_runner.h"

namespace keel::models {
namespace {

using Ranks = std::vector<std::int64_t>;

// Points on a line: five captions for each image.
RetrievalFold on_line(std::vector<float> captions, std::vector<float> images) {
  return {1, std::move(captions), std::move(images)};
}

TEST_CASE("retrieval: ranks by hand, the best of five for an image, equal ones by their places") {
  // Errors max(0, caption - image)^2; image 0 is at 1, image 1 at 3.
  const RetrievalFold fold = on_line({2, 1, 0, 4, 4, 3, 9, 9, 9, 5}, {1, 3});
  const RetrievalRanks ranks = rank_fold(fold, RetrievalError::kOrder);
  // Caption 0 is 1 from its image and 0 from the other; captions 1 and 2 are 0 from both, and their
  // own has the first place; 3 and 4 are nearer to image 1.
  CHECK(ranks.of_images == Ranks{2, 1, 1, 2, 2, 1, 1, 1, 1, 1});
  // Image 0: caption 1 has the error 0, and none before it has. Image 1: its caption 5 has the
  // error 0, as have captions 0, 1 and 2 that stand before it.
  CHECK(ranks.of_captions == Ranks{1, 4});
  const RetrievalRanks by_product =
      rank_fold(on_line({1, 1, 1, 1, 1, -1, -1, -1, -1, 2}, {1, 0.5f}), RetrievalError::kCosine);
  CHECK(by_product.of_images == Ranks{1, 1, 1, 1, 1, 1, 1, 1, 1, 2});
  CHECK(by_product.of_captions == Ranks{2, 1});
}

TEST_CASE("retrieval: the first images of a caption, equal ones by their places") {
  const std::vector<float> images{0, 5, 2, 1, 5};
  const std::vector<float> caption{2};
  CHECK(first_images(caption, images, RetrievalError::kOrder, 4) == Ranks{1, 2, 4, 3});
  CHECK(first_images(caption, images, RetrievalError::kCosine, 2) == Ranks{1, 4});
  CHECK(first_images(caption, images, RetrievalError::kOrder, 9) == Ranks{1, 2, 4, 3, 0});
}

TEST_CASE("image ranker: asks for all images, then for the captions") {
  constexpr std::int64_t kImages = 70, kCaptions = 3;
  Tensor features(DType::kF32, {kImages, 2});
  for (std::int64_t i = 0; i < kImages; ++i) features.as<float>()[std::size_t(2 * i)] = float(i);
  ImageRanker ranker(std::vector<std::string>{"a b c d e", "a", ""}, text::Vocabulary({}, {}),
                     std::move(features), RetrievalError::kCosine);
  CHECK(ranker.size() == kCaptions);
  std::int64_t images = 0, captions = 0;
  while (const task::Batch* batch = ranker.next()) {
    const auto rows = std::ssize(batch->rows);
    Tensor image(DType::kF32, {rows, 1}), caption(DType::kF32, {rows, 1});
    for (std::size_t place = 0; place < batch->rows.size(); ++place) {
      if (batch->rows[place] < 0) continue;
      (images < kImages ? images : captions) += 1;
      image.as<float>()[place] = batch->values[3].as<float>()[2 * place];
      caption.as<float>()[place] = batch->rows[place] == 1 ? -1.0f : 1.0f;
    }
    std::map<std::string, Tensor> predictions;
    predictions["image"] = std::move(image);
    predictions["caption"] = std::move(caption);
    ranker.take(predictions);
  }
  CHECK(images == kImages);
  CHECK(captions == kCaptions);
  // The product is greatest with the last image, and for the second caption with the first one.
  CHECK(ranker.answers() == std::vector<std::string>{"69 68 67 66 65 64 63 62 61 60",
                                                     "0 1 2 3 4 5 6 7 8 9",
                                                     "69 68 67 66 65 64 63 62 61 60"});
}

// Predictions of captions first, first + 1, ...: rows of one number each.
struct Predicted {
  task::Batch batch;
  std::map<std::string, Tensor> predictions;

  Predicted(const RetrievalFold& points, const Ranks& captions) {
    const auto count = std::int64_t(captions.size()), width = points.width;
    Tensor caption(DType::kF32, {count, width}), image(DType::kF32, {count, width});
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t row = captions[std::size_t(i)];
      for (std::int64_t k = 0; row >= 0 && k < width; ++k) {
        caption.as<float>()[std::size_t(i * width + k)] =
            points.captions[std::size_t(row * width + k)];
        image.as<float>()[std::size_t(i * width + k)] =
            points.images[std::size_t(row / kCaptionsAnImage * width + k)];
      }
    }
    batch.rows = captions;
    predictions["caption"] = std::move(caption);
    predictions["image"] = std::move(image);
  }
};

RetrievalFold random_points(std::int64_t images, std::int64_t width) {
  RetrievalFold fold{width, {}, {}};
  const Tensor c = test::random_normal({images * kCaptionsAnImage, width}, 1),
               f = test::random_normal({images, width}, 2);
  for (std::int64_t e = 0; e < c.elements(); ++e) fold.captions.push_back(float(c.at(e)));
  for (std::int64_t e = 0; e < f.elements(); ++e) fold.images.push_back(float(f.at(e)));
  return fold;
}

std::map<std::string, double> scored(const RetrievalFold& points, std::int64_t fold,
                                     const Ranks& order, std::size_t batch) {
  RetrievalScorer scorer(fold, RetrievalError::kOrder);
  for (std::size_t first = 0; first < order.size(); first += batch) {
    const auto end = std::min(first + batch, order.size());
    Ranks rows(order.begin() + std::ptrdiff_t(first), order.begin() + std::ptrdiff_t(end));
    rows.push_back(-1);  // a row of padding
    const Predicted said(points, rows);
    scorer.take(said.batch, said.predictions);
  }
  return scorer.scores();
}

Ranks in_order(std::int64_t count) {
  Ranks rows;
  for (std::int64_t i = 0; i < count; ++i) rows.push_back(i);
  return rows;
}

TEST_CASE("retrieval: scores are those of a matrix of all errors") {
  constexpr std::int64_t kImages = 23, kWidth = 19;
  const RetrievalFold points = random_points(kImages, kWidth);
  std::vector<std::int64_t> of_images, of_captions(kImages, 0);
  const auto error = [&](std::int64_t i, std::int64_t j) {
    double sum = 0;
    for (std::int64_t k = 0; k < kWidth; ++k) {
      const double d = double(points.captions[std::size_t(i * kWidth + k)]) -
                       points.images[std::size_t(j * kWidth + k)];
      sum += d > 0 ? d * d : 0;
    }
    return sum;
  };
  for (std::int64_t i = 0; i < 5 * kImages; ++i) {
    std::int64_t rank = 1;
    for (std::int64_t j = 0; j < kImages; ++j) rank += error(i, j) < error(i, i / 5);
    of_images.push_back(rank);
  }
  for (std::int64_t j = 0; j < kImages; ++j) {
    std::int64_t best = 1000;
    for (std::int64_t own = 5 * j; own < 5 * j + 5; ++own) {
      std::int64_t rank = 1;
      for (std::int64_t i = 0; i < 5 * kImages; ++i) rank += error(i, j) < error(own, j);
      best = std::min(best, rank);
    }
    of_captions[std::size_t(j)] = best;
  }
  const RetrievalRanks ranks = rank_fold(points, RetrievalError::kOrder);
  CHECK(ranks.of_images == of_images);
  CHECK(ranks.of_captions == of_captions);
  const auto scores = scored(points, 1000, in_order(5 * kImages), 32);
  const auto share = [](const Ranks& all, std::int64_t k) {
    return 100 * double(std::ranges::count_if(all, [k](auto r) { return r <= k; })) /
           double(all.size());
  };
  for (const std::int64_t k : {1, 5, 10}) {
    CHECK(scores.at(fmt::format("image_r{}", k)) == doctest::Approx(share(of_images, k)));
    CHECK(scores.at(fmt::format("caption_r{}", k)) == doctest::Approx(share(of_captions, k)));
  }
  CHECK(scores.at("image_recall") ==
        doctest::Approx(share(of_images, 1) + share(of_images, 5) + share(of_images, 10)));
  double mean = 0;
  for (const std::int64_t rank : of_captions) mean += double(rank) / kImages;
  CHECK(scores.at("caption_mean_rank") == doctest::Approx(mean));
  std::ranges::sort(of_captions);
  CHECK(scores.at("caption_median_rank") == of_captions[11]);
}

TEST_CASE("retrieval: folds do not see each other, and batches may come in any order") {
  const RetrievalFold points = random_points(14, 8);
  Ranks order = in_order(70);
  const auto straight = scored(points, 5, order, 70);
  std::ranges::reverse(order);
  CHECK(scored(points, 5, order, 9) == straight);
  CHECK(scored(points, 5, order, 1) == straight);
  double right = 0, of_all = 0;
  for (const std::int64_t first : {0, 5, 10}) {
    const std::int64_t count = std::min<std::int64_t>(5, 14 - first);
    const auto cut = [&](const std::vector<float>& all, std::int64_t each) {
      const auto begin = all.begin() + first * each * 8;
      return std::vector<float>(begin, begin + count * each * 8);
    };
    const RetrievalFold part{8, cut(points.captions, 5), cut(points.images, 1)};
    const auto scores = scored(part, 1000, in_order(5 * count), 70);
    right += scores.at("image_r1") * double(count);
    of_all += double(count);
  }
  CHECK(straight.at("image_r1") == doctest::Approx(right / of_all));
  CHECK(scored(points, 1000, in_order(70), 70) != straight);
}

TEST_CASE("retrieval: where all embeddings are equal recall is chance, and so where they are NaN") {
  constexpr std::int64_t kImages = 40;
  for (const float value : {0.5f, NAN}) {
    const RetrievalFold points = on_line(std::vector<float>(5 * kImages, value),
                                         std::vector<float>(std::size_t{kImages}, value));
    const auto scores = scored(points, kImages, in_order(5 * kImages), 64);
    CHECK(scores.at("image_r1") == doctest::Approx(100.0 / kImages));
    CHECK(scores.at("image_r10") == doctest::Approx(1000.0 / kImages));
    CHECK(scores.at("image_mean_rank") == doctest::Approx((1 + kImages) / 2.0));
    CHECK(scores.at("image_median_rank") == kImages / 2);
    // Caption 5 j stands at 5 j + 1 for every image.
    CHECK(scores.at("caption_r1") == doctest::Approx(100.0 / kImages));
    CHECK(scores.at("caption_r10") == doctest::Approx(200.0 / kImages));
  }
}

TEST_CASE("retrieval: captions that never came are noticed") {
  const RetrievalFold points = random_points(3, 4);
  Ranks rows = in_order(15);
  rows.erase(rows.begin() + 6);
  test::check_refused([&] { scored(points, 1000, rows, 4); }, "[order_embeddings] fold 0",
                      "captions of 3 images, 5 each, got 14");
}

}  // namespace
}  // namespace keel::models
