#include "models/text_classifier/model.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "frontend/data/read_ahead.h"
#include "frontend/nn/layers.h"
#include "frontend/nn/positions.h"
#include "frontend/task/classification.h"
#include "frontend/text/lines.h"
#include "frontend/text/utf8.h"
#include "models/text_classifier/line_decoder.h"
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

std::vector<std::int32_t> numbers_of(const std::string& line, const text::Vocabulary& vocabulary) {
  std::vector<std::int32_t> numbers;
  std::istringstream words(line);
  for (std::string word; words >> word;) numbers.push_back(vocabulary.id(word));
  return numbers;
}

// The names of classes as an asset has them: one a line.
std::vector<std::string> labels_of(std::string_view text) {
  std::vector<std::string> labels;
  text::Lines lines(text);
  while (const std::optional<text::Line> line = lines.next()) {
    check(!line->text.empty(), ErrorKind::kBadInput, "labels: line {}: expected a label, got none",
          line->number);
    labels.emplace_back(line->text);
  }
  check(!labels.empty(), ErrorKind::kBadInput, "labels: expected a label, got none");
  return labels;
}

}  // namespace

void TextClassifierOptions::validate() const {
  expect_one_of("task", task, {"rt", "sst5", "files"});
  expect_one_of("place", place, {"pre", "post"});
  expect_one_of("init", init, {"xavier", "kaiming"});
  expect_one_of("positions", positions, {"sinusoidal", "learned"});
  nn::Norm::parse(norm);
  nn::check_widths(width, heads);
}

TextOptions TextClassifier::text_options(const task::DataRequest& request) const {
  return {.source = request.source,
          .task = options_.task,
          .seed = request.seed,
          .min_count = options_.min_count,
          .train_rows = request.train_rows,
          .lower_case = options_.lower_case,
          .vocabulary = vocabulary_,
          .labels = labels_};
}

void TextClassifier::prepare(const task::DataRequest& request) {
  if (vocabulary_) return;
  const TextData data = TextData::load(text_options(request));
  vocabulary_ = data.shared_vocabulary();
  labels_ = data.labels();
}

// Of RT and SST5 the labels are numbers, and a checkpoint need not keep them.
task::Assets TextClassifier::assets() const {
  if (!vocabulary_) return {};
  task::Assets assets{{"vocabulary", vocabulary_->text()}};
  if (options_.task == "files") assets["labels"] = fmt::format("{}\n", fmt::join(labels_, "\n"));
  return assets;
}

void TextClassifier::set_assets(const task::Assets& assets) {
  const auto found = assets.find("vocabulary"), labels = assets.find("labels");
  check(found != assets.end(), ErrorKind::kBadInput, "expected a vocabulary, got none");
  check(labels != assets.end() || options_.task != "files", ErrorKind::kBadInput,
        "expected labels, got none");
  labels_ = labels == assets.end() ? unnamed_classes() : labels_of(labels->second);
  vocabulary_ = std::make_shared<const text::Vocabulary>(
      text::Vocabulary::parse(found->second, "vocabulary"));
}

std::vector<std::string> TextClassifier::unnamed_classes() const {
  return task::numbered_classes(options_.task == "sst5" ? 5 : 2);
}

std::vector<std::string> TextClassifier::class_names() const {
  return labels_.empty() ? unnamed_classes() : labels_;
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
  const Value logits = nn::linear(net, "logits", nn::masked_mean(net, x, mask),
                                  std::ssize(class_names()), {.weight_init = options.init});
  task::Outputs outputs = task::classification(net.graph, logits, in["label"]);
  outputs.metrics[0].name = "accuracy";
  return outputs;
}

std::vector<task::MetricInfo> TextClassifier::metrics() const {
  return {{.name = "accuracy", .unit = "%", .higher_is_better = true, .of = task::percent_without}};
}

std::unique_ptr<task::Decoder> TextClassifier::portion_decoder(std::span<const std::string> lines,
                                                               std::int64_t) const {
  data::LabelledRows rows;
  for (const std::string& line : lines) {
    rows.add(numbers_of(options_.lower_case ? text::lower_case(line) : line, *vocabulary_), 0);
  }
  return std::make_unique<LineDecoder>(rows, class_names());
}

}  // namespace keel::models
