#include "models/order_embeddings/model.h"

#include <charconv>

#include "frontend/nn/embedding.h"
#include "frontend/nn/recurrent.h"
#include "frontend/text/lines.h"
#include "models/order_embeddings/builtin.h"
#include "models/order_embeddings/caption_embedder.h"
#include "models/order_embeddings/files.h"
#include "models/order_embeddings/image_ranker.h"
#include "src/ops/elementwise.h"
#include "src/ops/layout.h"
#include "src/ops/matmul.h"
#include "src/ops/order_violation.h"
#include "src/ops/reduce.h"

namespace keel::models {
namespace {

// Below this square of a length a row counts as zeros, such as one of padding.
constexpr double kNoLength = 1e-30;

Initializer small_uniform() { return nn::uniform(0.1); }

// 1 on the diagonal of (rows, rows), 0 elsewhere.
Tensor diagonal(DType dtype, std::int64_t rows) {
  Tensor result(DType::kF32, {rows, rows});
  for (std::int64_t i = 0; i < rows; ++i) result.as<float>()[std::size_t(i * (rows + 1))] = 1;
  return result.to(dtype);
}

// 1 where a row is an image and another row another image, 0 elsewhere.
Value different_images(Graph& g, Value numbers, DType dtype) {
  const std::int64_t rows = g.shape(numbers)[0];
  const Value image = ops::cast(g, numbers, dtype);
  const Value one = g.constant(1.0, dtype), none = g.constant(0.0, dtype);
  const Value down = ops::broadcast_to(g, image, {rows, rows});
  const Value across = ops::broadcast_to(g, ops::reshape(g, image, {rows, 1}), {rows, rows});
  const auto unless = [&](Value condition, Value w) { return ops::select(g, condition, none, w); };
  const Value differ = unless(ops::equal(g, down, across), one);
  return unless(ops::less(g, down, none), unless(ops::less(g, across, none), differ));
}

// L of the errors e (captions, images) of a batch.
Value ranking_loss(Graph& g, Value e, Value numbers, double margin) {
  const DType dtype = g.type(e).dtype;
  const std::int64_t rows = g.shape(e)[0];
  const Value own = ops::mul(g, e, g.constant(diagonal(dtype, rows)));
  const Value counted = different_images(g, numbers, dtype);
  const auto cost = [&](int axis) {
    const Value right = ops::sum(g, own, {axis}, true);
    return ops::relu(g, ops::scale(g, ops::sub(g, right, e), 1, margin));
  };
  return ops::sum(g, ops::mul(g, ops::add(g, cost(0), cost(1)), counted));
}

Value count_images(Graph& g, Value numbers, DType dtype) {
  const Value none = g.constant(0.0, dtype);
  const Value image = ops::cast(g, numbers, dtype);
  return ops::sum(g, ops::select(g, ops::less(g, image, none), none, g.constant(1.0, dtype)));
}

void cut_validation(CaptionCorpus& corpus, std::int64_t images) {
  if (corpus.only) return;  // it is evaluated, and not by a training
  const std::int64_t all = corpus.valid.images();
  keep_first_images(corpus.valid, images);
  if (corpus.valid.images() == all) return;
  corpus.origin += fmt::format(", validation on the first {} images", corpus.valid.images());
}

text::Vocabulary vocabulary_of(const CaptionCorpus& corpus) {
  text::WordCounts counts;
  for (const DescribedImages* part : {&corpus.train, &corpus.valid}) {
    for (const std::string& caption : part->captions) {
      for (const std::string_view word : text::words_of(caption)) ++counts[std::string(word)];
    }
  }
  return {counts, {}};
}

}  // namespace

void OrderEmbeddingsOptions::validate() const { nn::Norm::parse(norm); }

task::Assets OrderEmbeddingsNetwork::assets() const {
  return {{"vocabulary", vocabulary_.text()}, {"feature_width", fmt::format("{}", feature_width_)}};
}

Value OrderEmbeddingsNetwork::embed_captions(nn::Net& net, const task::Inputs& in) const {
  const nn::Embedding embedding(net, "words", vocabulary_.size(), options_.word_width,
                                {.init = small_uniform()});
  const nn::Gru gru(net, "gru", options_.word_width, options_.width,
                    {.norms = nn::cell_norms(nn::Norm::parse(options_.norm), options_.norm_of),
                     .input_init = [](std::int64_t) { return small_uniform(); }});
  return gru(embedding(in["words"]), in["mask"]).last;
}

Value OrderEmbeddingsNetwork::on_sphere(nn::Net& net, Value x) const {
  Graph& g = net.graph;
  const Value squares = ops::sum(g, ops::square(g, x), {1}, true);
  const Value length =
      ops::sqrt(g, ops::maximum(g, squares, g.constant(kNoLength, g.type(x).dtype)));
  const Value unit = ops::div(g, x, length);
  return options_.error == PairError::kOrder ? ops::abs(g, unit) : unit;
}

task::Outputs OrderEmbeddingsNetwork::build(nn::Net& net, const task::Inputs& in) const {
  Graph& g = net.graph;
  const Value caption = on_sphere(net, embed_captions(net, in));
  Value features = in["features"];
  if (g.type(features).dtype != net.dtype) features = ops::cast(g, features, net.dtype);
  const Value projected =
      nn::linear(net, "image", features, options_.width, {.weight_init = nn::xavier()});
  const Value image = on_sphere(net, projected);
  const bool by_order = options_.error == PairError::kOrder;
  const Value e = by_order ? ops::order_violation(g, caption, image)
                           : ops::neg(g, ops::matmul(g, caption, image, {.transpose_b = true}));
  const Value loss = ranking_loss(g, e, in["image"], options_.margin);
  return {.loss_sum = ops::mul(g, loss, count_images(g, in["image"], g.type(e).dtype)),
          .metrics = {},
          .predictions = {{"caption", caption}, {"image", image}}};
}

RetrievalError OrderEmbeddingsNetwork::retrieval_error() const {
  return options_.error == PairError::kOrder ? RetrievalError::kOrder : RetrievalError::kCosine;
}

std::unique_ptr<task::Scorer> OrderEmbeddingsNetwork::scorer() const {
  return std::make_unique<RetrievalScorer>(options_.fold, retrieval_error());
}

std::unique_ptr<task::Decoder> OrderEmbeddingsNetwork::decoder(std::span<const std::string> lines,
                                                               std::int64_t) const {
  if (options_.images.empty()) {
    return std::make_unique<CaptionEmbedder>(lines, vocabulary_, feature_width_);
  }
  Tensor features = read_features(options_.images);
  check(features.shape()[1] == feature_width_, ErrorKind::kBadInput,
        "[order_embeddings] {}: expected features of width {}, as those of training, got {}",
        options_.images, feature_width_, features.shape()[1]);
  return std::make_unique<ImageRanker>(lines, vocabulary_, std::move(features), retrieval_error());
}

task::WordCount OrderEmbeddingsNetwork::word_count(std::span<const std::string> lines) const {
  task::WordCount count;
  for (const std::string& line : lines) {
    std::vector<std::int32_t> numbers;
    for (const std::string_view word : text::words_of(line)) {
      numbers.push_back(vocabulary_.id(word));
    }
    count.add(numbers, text::Vocabulary::kUnk);
  }
  return count;
}

std::shared_ptr<const OrderEmbeddingsNetwork> OrderEmbeddings::restored(
    const task::Assets& assets) const {
  const std::string& width = task::find_asset(assets, "feature_width");
  std::int64_t feature_width = 0;
  const auto [end, error] =
      std::from_chars(width.data(), width.data() + width.size(), feature_width);
  check(error == std::errc() && end == width.data() + width.size() && feature_width >= 1,
        ErrorKind::kBadInput, "feature_width: expected a number of 1 or more, got '{}'", width);
  return std::make_shared<const OrderEmbeddingsNetwork>(
      options_, text::Vocabulary::parse(task::find_asset(assets, "vocabulary"), "vocabulary"),
      feature_width);
}

CaptionCorpus OrderEmbeddings::read(const task::DataRequest& request) const {
  const CaptionFileOptions files{.lower_case = options_.lower_case,
                                 .synthetic = options_.features == CaptionFeatures::kSynthetic,
                                 .only = request.only};
  CaptionCorpus corpus =
      request.source == "builtin" ? make_shapes() : read_captions(request.source, files);
  const std::int64_t train = corpus.train.images();
  keep_first_images(corpus.train, request.train_rows);
  if (const std::int64_t beyond = train - corpus.train.images(); beyond > 0) {
    corpus.skipped.push_back({beyond, fmt::format("beyond the first {}", request.train_rows)});
  }
  return corpus;
}

task::Prepared OrderEmbeddings::prepare(const task::DataRequest& request,
                                        const task::Assets* known) const {
  CaptionCorpus corpus = read(request);
  const auto network = known
                           ? restored(*known)
                           : std::make_shared<const OrderEmbeddingsNetwork>(
                                 options_, vocabulary_of(corpus), corpus.train.features.shape()[1]);
  cut_validation(corpus, options_.valid_images);
  const auto number = [network, fold = options_.fold, name = corpus.name, origin = corpus.origin](
                          task::Split split, DescribedImages images, data::SplitNotes notes) {
    const std::int64_t width = images.features.shape()[1];
    check(width == network->feature_width(), ErrorKind::kBadInput,
          "[order_embeddings] {}: expected features of width {}, as those of training, got {}",
          origin, network->feature_width(), width);
    auto rows = std::make_shared<CaptionRows>(std::move(notes), std::move(images.features),
                                              CaptionRows::Options{.fold = fold});
    for (std::size_t i = 0; i < images.captions.size(); ++i) {
      rows->add(images.captions[i], network->vocabulary(),
                fmt::format("{} {}: caption {}", name, data::name_of(split), i + 1));
    }
    return rows;
  };
  return {network, data::splits_of(std::move(corpus), number)};
}

}  // namespace keel::models
