#include "models/order_embeddings/model.h"

#include <charconv>

#include "frontend/nn/embedding.h"
#include "frontend/nn/recurrent.h"
#include "models/order_embeddings/caption_embedder.h"
#include "src/ops/elementwise.h"
#include "src/ops/layout.h"
#include "src/ops/matmul.h"
#include "src/ops/order_error.h"
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

const std::string& find_asset(const task::Assets& assets, const std::string& name) {
  const auto found = assets.find(name);
  check(found != assets.end(), ErrorKind::kBadInput, "expected a {}, got none", name);
  return found->second;
}

}  // namespace

void OrderEmbeddingsOptions::validate() const { nn::Norm::parse(norm); }

CaptionDataOptions OrderEmbeddings::data_options(const task::DataRequest& request) const {
  return {.source = request.source,
          .files = {.lower_case = options_.lower_case,
                    .made_up = options_.features == CaptionFeatures::kMadeUp},
          .train_rows = request.train_rows,
          .valid_rows = options_.valid_images,
          .fold = options_.fold,
          .vocabulary = vocabulary_};
}

void OrderEmbeddings::prepare(const task::DataRequest& request) {
  if (vocabulary_) return;
  const CaptionData data = CaptionData::load(data_options(request));
  vocabulary_ = data.vocabulary();
  feature_width_ = data.feature_width();
}

task::Assets OrderEmbeddings::assets() const {
  if (!vocabulary_) return {};
  return {{"vocabulary", vocabulary_->text()},
          {"feature_width", fmt::format("{}", feature_width_)}};
}

void OrderEmbeddings::set_assets(const task::Assets& assets) {
  vocabulary_ = std::make_shared<const text::Vocabulary>(
      text::Vocabulary::parse(find_asset(assets, "vocabulary"), "vocabulary"));
  const std::string& width = find_asset(assets, "feature_width");
  const auto [end, error] =
      std::from_chars(width.data(), width.data() + width.size(), feature_width_);
  check(error == std::errc() && end == width.data() + width.size() && feature_width_ >= 1,
        ErrorKind::kBadInput, "feature_width: expected a number of 1 or more, got '{}'", width);
}

std::unique_ptr<task::Splits> OrderEmbeddings::load(const task::DataRequest& request) const {
  auto data = std::make_unique<CaptionData>(CaptionData::load(data_options(request)));
  check(!vocabulary_ || data->feature_width() == feature_width_, ErrorKind::kBadInput,
        "[order_embeddings] {}: expected features of width {}, as the network has learned, got {}",
        request.source, feature_width_, data->feature_width());
  return data;
}

Value OrderEmbeddings::embed_captions(nn::Net& net, const task::Inputs& in) const {
  constexpr std::int64_t kUntold = 8;  // a graph may be built before the data was read
  const std::int64_t words = vocabulary_ ? vocabulary_->size() : kUntold;
  const nn::Embedding embedding(net, "words", words, options_.word_width,
                                {.init = small_uniform()});
  const nn::Gru gru(net, "gru", options_.word_width, options_.width,
                    {.norms = nn::cell_norms(nn::Norm::parse(options_.norm)),
                     .input_init = [](std::int64_t) { return small_uniform(); }});
  return gru(embedding(in["words"]), in["mask"]).last;
}

Value OrderEmbeddings::on_sphere(nn::Net& net, Value x) const {
  Graph& g = net.graph;
  const Value squares = ops::sum(g, ops::square(g, x), {1}, true);
  const Value length =
      ops::sqrt(g, ops::maximum(g, squares, g.constant(kNoLength, g.type(x).dtype)));
  const Value unit = ops::div(g, x, length);
  return options_.error == PairError::kOrder ? ops::abs(g, unit) : unit;
}

task::Outputs OrderEmbeddings::build(nn::Net& net, const task::Inputs& in) const {
  Graph& g = net.graph;
  const Value caption = on_sphere(net, embed_captions(net, in));
  Value features = in["features"];
  if (g.type(features).dtype != net.dtype) features = ops::cast(g, features, net.dtype);
  const Value projected =
      nn::linear(net, "image", features, options_.width, {.weight_init = nn::xavier()});
  const Value image = on_sphere(net, projected);
  const bool by_order = options_.error == PairError::kOrder;
  const Value e = by_order ? ops::order_error(g, caption, image)
                           : ops::neg(g, ops::matmul(g, caption, image, {.transpose_b = true}));
  const Value loss = ranking_loss(g, e, in["image"], options_.margin);
  return {.loss_sum = ops::mul(g, loss, count_images(g, in["image"], g.type(e).dtype)),
          .metrics = {},
          .predictions = {{"caption", caption}, {"image", image}}};
}

std::unique_ptr<task::Scorer> OrderEmbeddings::scorer() const {
  const bool by_order = options_.error == PairError::kOrder;
  return std::make_unique<RetrievalScorer>(
      options_.fold, by_order ? RetrievalError::kOrder : RetrievalError::kCosine);
}

std::unique_ptr<task::Decoder> OrderEmbeddings::decoder(std::span<const std::string> lines) const {
  return std::make_unique<CaptionEmbedder>(lines, *vocabulary_, feature_width_);
}

}  // namespace keel::models
