// Ranking captions and images by order embeddings (Vendrov, Kiros, Fidler, Urtasun 2016), with the
// layer normalization of Ba et al. 2016, section 6.1.
#pragma once

#include <memory>

#include "frontend/nn/layers.h"
#include "frontend/nn/summed_input.h"
#include "frontend/task/task.h"
#include "frontend/text/vocabulary.h"
#include "models/order_embeddings/caption_rows.h"
#include "models/order_embeddings/retrieval.h"

namespace keel::models {

// The distance of a caption from an image.
enum class PairError {
  kOrder,      // sum_k max(0, s_k - f_k)^2, of embeddings without negative coordinates
  kSymmetric,  // - s f, the baseline
};
constexpr auto choice_words(PairError) {
  return std::to_array<std::string_view>({"order", "symmetric"});
}

// The source of the features of images.
enum class CaptionFeatures {
  kFiles,      // files beside the captions
  kSynthetic,  // no files: words of the captions stand in for them (synthetic.h)
};
constexpr auto choice_words(CaptionFeatures) {
  return std::to_array<std::string_view>({"files", "synthetic"});
}

struct OrderEmbeddingsOptions {
  std::string norm = "layernorm";  // at the four products of the GRU
  nn::NormOf norm_of = nn::NormOf::kProducts;
  PairError error = PairError::kOrder;
  double margin = 0.05;
  std::int64_t width = 1024, word_width = 300;  // of embeddings and of the GRU, of words
  CaptionFeatures features = CaptionFeatures::kFiles;
  bool lower_case = true;
  std::int64_t valid_images = 1000;  // of the validation set, its first ones; 0: all
  std::int64_t fold = 1000;          // images among which a caption must find its own
  std::string images = "";           // a file of features, whose images predict ranks; empty: none

  static constexpr auto fields() {
    using T = OrderEmbeddingsOptions;
    return std::tuple{
        option("norm", &T::norm, "norm at the four products of the GRU", norm_name()),
        option("norm_of", &T::norm_of, nn::kNormOfHelp),
        option("error", &T::error,
               "score of a caption and an image: their violation of the order, or minus their "
               "product (symmetric)"),
        option("margin", &T::margin,
               "margin by which the score of a wrong pair must exceed that of a right one",
               more_than(0, 1000)),
        option("width", &T::width, "width of the embeddings and of the GRU", between(1, 65536)),
        option("word_width", &T::word_width, "width of word vectors", between(1, 65536)),
        option("features", &T::features,
               "features of the images: read from files beside the captions, or computed from the "
               "words of the captions (synthetic)"),
        option("lower_case", &T::lower_case, "conversion of captions to lower case"),
        option("valid_images", &T::valid_images,
               "number of validation images, the first ones; 0: all", at_least(0)),
        option("fold", &T::fold, "number of images among which each caption must find its own",
               between(1, 1000000)),
        option("images", &T::images,
               "file with features of the images that predict ranks for a caption; empty: none",
               described("a file, or empty"))};
  }
  void validate() const;
};

// For captions w (rows, length), ended by kCaptionEnd, and images x (rows, feature width):
//     s = |u(h)|,  h the last state of a GRU over E[w];   f = |u(x W + b)|;   u(y) = y / |y|
//     e_ij = error of caption i for image j
//     L = sum over i, j of different images of max(0, m + e_jj - e_ij) + max(0, m + e_ii - e_ij)
// L is a sum over the batch, as published, where other tasks have a mean: the logged loss is L, and
// the summed loss is L times the rows of the batch. The symmetric error has no absolute values in s
// and f.
class OrderEmbeddingsNetwork final : public task::NetworkOf<OrderEmbeddingsOptions> {
 public:
  OrderEmbeddingsNetwork(const OrderEmbeddingsOptions& options, text::Vocabulary vocabulary,
                         std::int64_t feature_width)
      : NetworkOf(options), vocabulary_(std::move(vocabulary)), feature_width_(feature_width) {}

  const text::Vocabulary& vocabulary() const { return vocabulary_; }
  std::int64_t feature_width() const { return feature_width_; }

  // The vocabulary, and the width of the features.
  task::Assets assets() const override;
  std::vector<task::Input> inputs(const task::Sizes& sizes) const override {
    return caption_inputs(sizes, feature_width_);
  }
  task::Sizes sizes(std::int64_t batch) const override { return {batch, 12}; }
  task::Outputs build(nn::Net& net, const task::Inputs& in) const override;
  std::unique_ptr<task::Scorer> scorer() const override;
  // A caption a line; the answer is its embedding, numbers separated by blanks. With `images` it is
  // the images that come first for the caption (image_ranker.h).
  task::Answers answers() const override { return task::Answers::kAllLines; }
  std::unique_ptr<task::Decoder> decoder(std::span<const std::string> lines,
                                         std::int64_t first) const override;
  task::WordCount word_count(std::span<const std::string> lines) const override;

 private:
  Value embed_captions(nn::Net& net, const task::Inputs& in) const;
  Value on_sphere(nn::Net& net, Value x) const;
  RetrievalError retrieval_error() const;

  text::Vocabulary vocabulary_;
  std::int64_t feature_width_;
};

class OrderEmbeddings final : public task::TaskWithOptions<OrderEmbeddingsOptions> {
 public:
  std::string_view name() const override { return "order_embeddings"; }
  std::string_view summary() const override {
    return "ranking images and captions, GRU (Vendrov et al. 2016, Ba et al. 2016)";
  }
  // The first metric, which chooses the best weights, is R@1 + R@5 + R@10 of images.
  std::vector<task::MetricInfo> metrics() const override { return RetrievalScorer::metrics(); }
  std::vector<task::OptionValues> data_forms(const std::string&) const override {
    return {{{"features", "files"}}, {{"features", "synthetic"}}};
  }
  // Throws as files.h says, and Error{kBadInput} for features of another width than in training.
  // Words are those of the training captions and of all validation captions, also of images beyond
  // valid_images.
  task::Prepared prepare(const task::DataRequest& request,
                         const task::Assets* known) const override;
  std::shared_ptr<const task::Network> restore(const task::Assets& assets) const override {
    return restored(assets);
  }

 private:
  CaptionCorpus read(const task::DataRequest& request) const;
  std::shared_ptr<const OrderEmbeddingsNetwork> restored(const task::Assets& assets) const;
};

}  // namespace keel::models
