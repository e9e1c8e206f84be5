#include "models/text_classifier/model.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "frontend/data/read_ahead.h"
#include "frontend/nn/layers.h"
#include "frontend/nn/positions.h"
#include "frontend/task/classification.h"
#include "frontend/text/utf8.h"
#include "src/ops/elementwise.h"
#include "src/ops/embedding.h"

namespace keel::models {
namespace {

void expect_one_of(std::string_view option, const std::string& got,
                   const std::vector<std::string>& known) {
  check(std::ranges::find(known, got) != known.end(), ErrorKind::kUsage, "{}: {}", option,
        unknown_name(got, known));
}

// Streams of the words that a vocabulary numbers.
class TextSplits : public task::Splits {
 public:
  explicit TextSplits(TextData data) : data_(std::move(data)) {}

  std::unique_ptr<task::Stream> stream(task::Split split,
                                       const task::StreamOptions& options) const override {
    data::TokenBatchOptions batches{.max_tokens = options.batch,
                                    .sorted = !options.shuffle.has_value(),
                                    .seed = options.shuffle.value_or(0)};
    auto stream = data_.stream(split, batches);
    if (!options.shuffle) return stream;
    return std::make_unique<data::ReadAhead>(std::move(stream));
  }

 private:
  TextData data_;
};

// Lines as sentences without labels; the answer is the number of the class.
class LineDecoder : public task::Decoder {
 public:
  explicit LineDecoder(const data::LabelledRows& rows)
      : answers_(static_cast<std::size_t>(rows.size())) {
    if (rows.size() == 0) return;
    stream_.emplace(data::StreamNotes{"lines", {}}, rows, data::TokenBatchOptions{.sorted = true});
  }

  std::int64_t size() const override { return std::ssize(answers_); }
  const task::Batch* next() override {
    if (!stream_ || step_ == stream_->steps(0)) return nullptr;
    return batch_ = &stream_->at(0, step_++);
  }
  void take(const std::map<std::string, Tensor>& predictions) override {
    const Tensor& logits = predictions.at("logits");
    for (std::size_t place = 0; place < batch_->rows.size(); ++place) {
      const std::int64_t row = batch_->rows[place];
      if (row < 0) continue;
      answers_[static_cast<std::size_t>(row)] = answer(logits, static_cast<std::int64_t>(place));
    }
  }
  std::vector<std::string> answers() const override { return answers_; }

 private:
  static std::string answer(const Tensor& logits, std::int64_t place) {
    const std::int64_t classes = logits.shape().back();
    std::int64_t best = 0;
    for (std::int64_t k = 1; k < classes; ++k) {
      if (logits.at(place * classes + k) > logits.at(place * classes + best)) best = k;
    }
    return fmt::format("{}", best);
  }

  std::vector<std::string> answers_;
  std::optional<data::TextStream> stream_;  // nothing without lines
  std::int64_t step_ = 0;
  const task::Batch* batch_ = nullptr;  // the one that was given last
};

std::vector<std::int32_t> numbers_of(const std::string& line, const text::Vocabulary& vocabulary) {
  std::vector<std::int32_t> numbers;
  std::istringstream words(line);
  for (std::string word; words >> word;) numbers.push_back(vocabulary.id(word));
  return numbers;
}

}  // namespace

void TextClassifierOptions::validate() const {
  expect_one_of("task", task, {"rt", "sst5"});
  expect_one_of("place", place, {"pre", "post"});
  expect_one_of("init", init, {"xavier", "kaiming"});
  expect_one_of("positions", positions, {"sinusoidal", "learned"});
  nn::Norm::parse(norm);
  const auto expect = [](bool holds, const char* option, const char* expected, auto got) {
    check(holds, ErrorKind::kUsage, "{}: expected {}, got {}", option, expected, got);
  };
  expect(layers >= 1 && layers <= 1000, "layers", "1 to 1000", layers);
  expect(width >= 4 && width % 2 == 0 && width <= 65536, "width", "an even number, 4 to 65536",
         width);
  expect(heads >= 1 && width % heads == 0, "heads", "a divisor of the width", heads);
  expect(feed_forward >= 1 && feed_forward <= 1000000, "feed_forward", "1 to 1000000",
         feed_forward);
  expect(dropout >= 0 && dropout < 1, "dropout", "in [0, 1)", dropout);
  expect(min_count >= 1, "min_count", ">= 1", min_count);
}

TextOptions TextClassifier::text_options(const task::DataRequest& request) const {
  return {.source = request.source,
          .task = options_.task,
          .seed = request.seed,
          .min_count = options_.min_count,
          .train_rows = request.train_rows,
          .lower_case = options_.lower_case,
          .vocabulary = vocabulary_};
}

void TextClassifier::prepare(const task::DataRequest& request) {
  if (!vocabulary_) vocabulary_ = TextData::load(text_options(request)).shared_vocabulary();
}

task::Assets TextClassifier::assets() const {
  if (!vocabulary_) return {};
  return {{"vocabulary", vocabulary_->text()}};
}

void TextClassifier::set_assets(const task::Assets& assets) {
  const auto found = assets.find("vocabulary");
  check(found != assets.end(), ErrorKind::kBadInput, "expected a vocabulary, got none");
  vocabulary_ = std::make_shared<const text::Vocabulary>(
      text::Vocabulary::parse(found->second, "vocabulary"));
}

std::unique_ptr<task::Splits> TextClassifier::load(const task::DataRequest& request) const {
  return std::make_unique<TextSplits>(TextData::load(text_options(request)));
}

std::vector<task::Input> TextClassifier::inputs(const task::Sizes& sizes) const {
  const std::int64_t rows = sizes.at(0), length = sizes.at(1);
  return {{"tokens", {DType::kI32, {rows, length}}},
          {"mask", {DType::kU8, {rows, length}}},
          {"label", {DType::kI32, {rows}}}};
}

task::Sizes TextClassifier::sizes(std::int64_t batch) const {
  constexpr std::int64_t kLength = 32;
  return {std::max<std::int64_t>(batch / kLength, 1), kLength};
}

nn::TransformerOptions TextClassifier::transformer() const {
  nn::TransformerOptions options{
      .heads = options_.heads, .feed_forward = options_.feed_forward, .dropout = options_.dropout};
  options.place = options_.place == "pre" ? nn::NormPlace::kPre : nn::NormPlace::kPost;
  options.norm = nn::Norm::parse(options_.norm);
  if (options_.init == "kaiming") options.init = nn::fan_in_uniform;
  return options;
}

Value TextClassifier::embed(nn::Net& net, Value tokens) const {
  Graph& g = net.graph;
  const std::int64_t length = g.shape(tokens)[1], width = options_.width;
  const std::int64_t words = vocabulary_ ? vocabulary_->size() : 2;
  const Value table =
      net.parameter("embedding", {words, width}, nn::normal(1 / std::sqrt(double(width))));
  const Value x = ops::scale(g, ops::embedding(g, table, tokens, text::Vocabulary::kPad),
                             std::sqrt(double(width)));
  const Value positions = options_.positions == "learned"
                              ? nn::learned_positions(net, "positions", length, width)
                              : nn::sinusoidal_positions(net, length, width);
  return nn::dropout(net, ops::add(g, x, positions), options_.dropout);
}

task::Outputs TextClassifier::build(nn::Net& net, const task::Inputs& in) const {
  const nn::TransformerOptions options = transformer();
  const Value mask = in["mask"];
  Value x = embed(net, in["tokens"]);
  for (std::int64_t i = 1; i <= options_.layers; ++i) {
    x = nn::encoder_layer(net, fmt::format("encoder{}", i), x, mask, options);
  }
  if (options.place == nn::NormPlace::kPre) x = options.norm(net, "norm", x, mask);
  const Value logits = nn::linear(net, "logits", nn::masked_mean(net, x, mask), classes(),
                                  {.weight_init = options.init});
  task::Outputs outputs = task::classification(net.graph, logits, in["label"]);
  outputs.metrics[0].name = "accuracy";
  outputs.predictions = {{"logits", logits}};
  return outputs;
}

std::vector<task::MetricInfo> TextClassifier::metrics() const {
  return {{.name = "accuracy", .unit = "%", .higher_is_better = true, .of = task::percent_without}};
}

std::unique_ptr<task::Decoder> TextClassifier::decoder(std::span<const std::string> lines) const {
  data::LabelledRows rows;
  for (const std::string& line : lines) {
    rows.add(numbers_of(options_.lower_case ? text::lower_case(line) : line, *vocabulary_), 0);
  }
  return std::make_unique<LineDecoder>(rows);
}

}  // namespace keel::models
