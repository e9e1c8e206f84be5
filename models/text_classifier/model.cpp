#include "models/text_classifier/model.h"

#include <algorithm>
#include <cmath>

#include "frontend/nn/layers.h"
#include "frontend/nn/positions.h"
#include "frontend/task/classification.h"
#include "frontend/text/lines.h"
#include "frontend/text/utf8.h"
#include "models/class_decoder.h"
#include "models/text_classifier/builtin.h"
#include "models/text_classifier/files.h"
#include "models/text_classifier/own_files.h"
#include "src/ops/elementwise.h"
#include "src/ops/embedding.h"

namespace keel::models {
namespace {

void expect_one_of(std::string_view option, const std::string& got,
                   const std::vector<std::string>& known) {
  check(std::ranges::find(known, got) != known.end(), ErrorKind::kUsage, "{}: {}", option,
        unknown_name(got, known));
}

text::Vocabulary vocabulary_of(const Sentences& sentences, std::int64_t min_count) {
  text::WordCounts counts;
  for (const text::LabelledSentence& sentence : sentences) {
    for (const std::string& word : sentence.words) ++counts[word];
  }
  return {counts, {.min_count = min_count}};
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
  expect_one_of("init", init, {"xavier", "kaiming"});
  expect_one_of("positions", positions, {"sinusoidal", "learned"});
  nn::ScaledNorm::parse(norm, scaling);
  nn::check_widths(width, heads);
}

TextClassifierNetwork::TextClassifierNetwork(const TextClassifierOptions& options,
                                             text::Vocabulary vocabulary,
                                             std::vector<std::string> labels)
    : NetworkOf(options), vocabulary_(std::move(vocabulary)), labels_(std::move(labels)) {}

std::vector<std::int32_t> TextClassifierNetwork::numbers(
    const std::vector<std::string>& words) const {
  std::vector<std::int32_t> numbers;
  for (const std::string& word : words) numbers.push_back(vocabulary_.id(word));
  return numbers;
}

// The labels of RT and SST5 are numbers, which a checkpoint need not keep.
task::Assets TextClassifierNetwork::assets() const {
  task::Assets assets{{"vocabulary", vocabulary_.text()}};
  if (options_.task == "files") assets["labels"] = fmt::format("{}\n", fmt::join(labels_, "\n"));
  return assets;
}

task::Sizes TextClassifierNetwork::sizes(std::int64_t batch) const {
  constexpr std::int64_t kLength = 32;
  return {std::max<std::int64_t>(batch / kLength, 1), kLength};
}

nn::TransformerOptions TextClassifierNetwork::transformer() const {
  nn::TransformerOptions options{.heads = options_.heads,
                                 .feed_forward = options_.feed_forward,
                                 .dropout = options_.dropout,
                                 .relu_dropout = options_.relu_dropout,
                                 .place = options_.place,
                                 .depth = {.layers = options_.layers}};
  options.norm = nn::ScaledNorm::parse(options_.norm, options_.scaling);
  if (options_.init == "kaiming") options.init = nn::fan_in_uniform;
  return options;
}

Value TextClassifierNetwork::embed(nn::Net& net, Value tokens) const {
  Graph& g = net.graph;
  const std::int64_t length = g.shape(tokens)[1], width = options_.width;
  const Value table = net.parameter("embedding", {vocabulary_.size(), width},
                                    nn::normal(1 / std::sqrt(double(width))));
  const Value x = ops::scale(g, ops::embedding(g, table, tokens, text::Vocabulary::kPad),
                             std::sqrt(double(width)));
  const Value positions = options_.positions == "learned"
                              ? nn::learned_positions(net, "positions", length, width)
                              : nn::sinusoidal_positions(net, length, width);
  return nn::dropout(net, ops::add(g, x, positions), options_.dropout);
}

task::Outputs TextClassifierNetwork::build(nn::Net& net, const task::Inputs& in) const {
  nn::TransformerOptions options = transformer();
  const Value mask = in["mask"];
  Value x = embed(net, in["tokens"]);
  for (std::int64_t i = 1; i <= options_.layers; ++i) {
    options.depth.layer = i;
    x = nn::encoder_layer(net, fmt::format("encoder{}", i), x, mask, options);
  }
  if (nn::has_final_norm(options.place)) x = options.norm(net, "norm", x, mask);
  const Value logits = nn::linear(net, "logits", nn::masked_mean(net, x, mask), std::ssize(labels_),
                                  {.weight_init = options.init});
  task::Outputs outputs = task::classification(net.graph, logits, in["label"]);
  outputs.metrics[0].name = "accuracy";
  return outputs;
}

std::vector<std::int32_t> TextClassifierNetwork::numbers_of_line(const std::string& line) const {
  const std::string cased = options_.lower_case ? text::lower_case(line) : line;
  std::vector<std::string> words;
  for (const std::string_view word : text::words_of(cased)) words.emplace_back(word);
  return numbers(words);
}

task::WordCount TextClassifierNetwork::word_count(std::span<const std::string> lines) const {
  task::WordCount count;
  for (const std::string& line : lines) {
    count.add(numbers_of_line(line), text::Vocabulary::kUnk);
  }
  return count;
}

std::unique_ptr<task::Decoder> TextClassifierNetwork::decoder(std::span<const std::string> lines,
                                                              std::int64_t) const {
  auto rows = std::make_shared<data::TextRows>(data::SplitNotes{"lines"});
  for (const std::string& line : lines) rows->add(numbers_of_line(line), 0);
  constexpr std::int64_t kTokens = 4096;
  const std::int64_t count = rows->size();
  return std::make_unique<ClassDecoder>(UnlabelledRows{std::move(rows), count, kTokens}, labels_);
}

std::vector<task::MetricInfo> TextClassifier::metrics() const {
  return {{.name = "accuracy", .unit = "%", .higher_is_better = true, .of = task::percent_without}};
}

std::vector<task::OptionValues> TextClassifier::data_forms(const std::string& folder) const {
  std::vector<std::string> forms{"files", "rt", "sst5"};
  std::ranges::stable_partition(forms, [&](const std::string& form) {
    if (form == "rt") return has_rt(folder);
    return is_sst5(folder, task::Split::kTrain) == (form == "sst5");
  });
  std::vector<task::OptionValues> values;
  for (const std::string& form : forms) values.push_back({{"task", form}});
  return values;
}

std::shared_ptr<const TextClassifierNetwork> TextClassifier::restored(
    const task::Assets& assets) const {
  const auto labels = assets.find("labels");
  check(labels != assets.end() || options_.task != "files", ErrorKind::kBadInput,
        "expected the asset labels, got none");
  return std::make_shared<const TextClassifierNetwork>(
      options_, text::Vocabulary::parse(task::find_asset(assets, "vocabulary"), "vocabulary"),
      labels == assets.end() ? task::numbered_classes(options_.task == "sst5" ? 5 : 2)
                             : labels_of(labels->second));
}

Corpus TextClassifier::read(const task::DataRequest& request,
                            const std::vector<std::string>& labels) const {
  const bool sst5 = options_.task == "sst5";
  if (request.source == "builtin") return make_polar(sst5 ? 5 : 2);
  // A split that is evaluated may be in files of one's own, with the numbers of RT's or SST5's
  // classes for labels.
  const bool evaluates_own = request.only && has_own_file(request.source, *request.only) &&
                             !(sst5 && is_sst5(request.source, *request.only));
  if (options_.task == "files" || evaluates_own) {
    return read_own_files(request.source, {.seed = request.seed,
                                           .lower_case = options_.lower_case,
                                           .labels = labels,
                                           .only = request.only});
  }
  return sst5 ? read_sst5(request.source, options_.lower_case, request.only)
              : read_rt(request.source, request.seed, options_.lower_case);
}

task::Prepared TextClassifier::prepare(const task::DataRequest& request,
                                       const task::Assets* known) const {
  std::shared_ptr<const TextClassifierNetwork> network = known ? restored(*known) : nullptr;
  std::vector<std::string> labels;  // that the data have to have; empty: any
  if (network) labels = network->class_names();
  Corpus corpus = read(request, labels);
  check(labels.empty() || labels == corpus.labels, ErrorKind::kBadInput,
        "[text_classifier] {}: expected data of the classes {}, got {}", corpus.origin,
        shown_labels(labels), shown_labels(corpus.labels));
  data::keep_first(corpus.train, request.train_rows, corpus.skipped);
  if (!network) {
    network = std::make_shared<const TextClassifierNetwork>(
        options_, vocabulary_of(corpus.train, options_.min_count), corpus.labels);
  }
  const auto number = [network](task::Split, const Sentences& sentences, data::SplitNotes notes) {
    auto rows = std::make_shared<data::TextRows>(std::move(notes));
    for (const text::LabelledSentence& sentence : sentences) {
      rows->add(network->numbers(sentence.words), sentence.label);
    }
    return rows;
  };
  return {network, data::splits_of(std::move(corpus), number)};
}

}  // namespace keel::models
