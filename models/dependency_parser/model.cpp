#include "models/dependency_parser/model.h"

#include "frontend/task/classification.h"
#include "models/dependency_parser/data.h"
#include "models/dependency_parser/greedy_parser.h"
#include "models/dependency_parser/inputs.h"
#include "src/ops/elementwise.h"
#include "src/ops/embedding.h"
#include "src/ops/layout.h"

namespace keel::models {
namespace {

// The logit of what is not legal. It is finite, for infinities make NaN of differences, and so low
// that exp(kIllegal - x) is 0 in float64 as in float32 for every logit x above kIllegal + 746.
constexpr double kIllegal = -1e9;
constexpr double kSmall = 0.01;
constexpr std::int64_t kParsedTogether = 256;  // sentences of a user

nn::FanInit init_of(ParserInit init) {
  if (init == ParserInit::kXavier) return nn::xavier();
  return [](std::int64_t) { return nn::uniform(kSmall); };
}

Value activated(Graph& g, Value x, ParserActivation activation) {
  if (activation == ParserActivation::kRelu) return ops::relu(g, x);
  return ops::mul(g, ops::square(g, x), x);
}

}  // namespace

void DependencyParserOptions::validate() const {
  const auto expect = [](bool holds, const char* option, const char* expected, auto got) {
    check(holds, ErrorKind::kUsage, "{}: expected {}, got {}", option, expected, got);
  };
  const bool has_norm = !nn::Norm::parse(norm).is_none();
  expect(layers >= 2 && layers <= 100, "layers", "2 to 100", layers);
  expect(hidden >= 1 && hidden <= 1000000, "hidden", "1 to 1000000", hidden);
  expect(embedding >= 1 && embedding <= 65536, "embedding", "1 to 65536", embedding);
  expect(embedding_range > 0 && embedding_range <= 100, "embedding_range", "in (0, 100]",
         embedding_range);
  expect(dropout >= 0 && dropout < 1, "dropout", "in [0, 1)", dropout);
  expect(input_dropout >= 0 && input_dropout < 1, "input_dropout", "in [0, 1)", input_dropout);
  expect(min_count >= 1, "min_count", ">= 1", min_count);
  expect(activation == ParserActivation::kRelu || has_norm || layers == 2, "activation",
         "relu, a norm, or 2 layers, for cubes of cubes grow beyond all bounds", "cube");
}

std::shared_ptr<const Symbols> DependencyParser::symbols_of(
    const task::DataRequest& request) const {
  if (symbols_) return symbols_;
  Treebank treebank = load_treebank(request, task::Split::kTrain);
  keep_first(treebank, request.train_rows);
  return std::make_shared<const Symbols>(treebank, options_.min_count);
}

void DependencyParser::prepare(const task::DataRequest& request) { symbols_ = symbols_of(request); }

task::Assets DependencyParser::assets() const {
  return symbols_ ? symbols_->texts() : task::Assets{};
}

void DependencyParser::set_assets(const task::Assets& assets) {
  symbols_ = std::make_shared<const Symbols>(assets);
}

std::unique_ptr<task::Splits> DependencyParser::load(const task::DataRequest& request) const {
  return std::make_unique<TreebankSplits>(request, symbols_of(request));
}

std::vector<task::Input> DependencyParser::inputs(const task::Sizes& sizes) const {
  return parser_inputs(sizes.at(0), classes());
}

Value DependencyParser::hidden(nn::Net& net, Value x) const {
  const nn::Norm norm = nn::Norm::parse(options_.norm);
  const nn::LayerOptions layer{
      .bias = !norm.has_bias(), .weight_init = init_of(options_.init), .norm = norm};
  for (std::int64_t i = 1; i < options_.layers; ++i) {
    x = nn::linear(net, fmt::format("fc{}", i), x, options_.hidden, layer);
    x = nn::dropout(net, activated(net.graph, x, options_.activation), options_.dropout);
  }
  return x;
}

task::Outputs DependencyParser::build(nn::Net& net, const task::Inputs& in) const {
  Graph& g = net.graph;
  const std::int64_t rows = g.shape(in["features"])[0], width = options_.embedding;
  const Value table =
      net.parameter("embedding", {table_rows(), width}, nn::uniform(options_.embedding_range));
  const Value looked_up = ops::embedding(g, table, in["features"]);
  Value x = ops::reshape(g, looked_up, {rows, std::int64_t{kFeatures} * width});
  x = hidden(net, nn::dropout(net, x, options_.input_dropout));
  const Value all =
      nn::linear(net, "logits", x, classes(), {.weight_init = init_of(options_.init)});
  const Value logits = ops::select(g, in["legal"], all, g.constant(kIllegal, net.dtype));
  task::Outputs outputs = task::classification(g, logits, in["label"]);
  outputs.metrics[0].name = "accuracy";
  outputs.predictions = {{"logits", logits}};
  return outputs;
}

std::vector<task::MetricInfo> DependencyParser::metrics() const {
  std::vector<task::MetricInfo> metrics;
  for (const char* name : {"uas", "las", "uas_punct", "las_punct"}) {
    metrics.push_back(
        {.name = name, .unit = "%", .higher_is_better = true, .of = task::percent_of});
  }
  metrics.push_back(
      {.name = "accuracy", .unit = "%", .higher_is_better = true, .of = task::percent_without});
  return metrics;
}

std::unique_ptr<task::Decoder> DependencyParser::decoder(std::span<const std::string> lines) const {
  return std::make_unique<GreedyParser>(
      std::make_shared<const NumberedTreebank>(treebank_of_lines(lines), symbols_),
      kParsedTogether);
}

}  // namespace keel::models
