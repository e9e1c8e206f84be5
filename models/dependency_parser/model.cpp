#include "models/dependency_parser/model.h"

#include "frontend/task/classification.h"
#include "models/dependency_parser/data.h"
#include "models/dependency_parser/greedy_parser.h"
#include "models/dependency_parser/inputs.h"
#include "models/dependency_parser/transition_rows.h"
#include "src/ops/elementwise.h"
#include "src/ops/embedding.h"
#include "src/ops/embedding_bag.h"
#include "src/ops/layout.h"
#include "src/ops/matmul.h"
#include "src/ops/reduce.h"

namespace keel::models {
namespace {

// The logit of what is not legal. It is finite, for infinities make NaN of differences, and so low
// that exp(kIllegal - x) is 0 in float64 as in float32 for every logit x above kIllegal + 746.
constexpr double kIllegal = -1e9;
constexpr double kSmall = 0.01;
constexpr std::int64_t kParsedTogether = 256;  // sentences of a user
// Elements of products that are kept: 64 MiB.
constexpr std::int64_t kMostKept = std::int64_t{1} << 24;

nn::FanInit init_of(ParserInit init) {
  if (init == ParserInit::kXavier) return nn::xavier();
  return [](std::int64_t) { return nn::uniform(kSmall); };
}

// The embeddings of features, and the weight of the layer that they are the input of.
struct Embedded {
  Value table, features, weight;
};

Value concat_of(Graph& g, const Embedded& e, Value features) {
  const Shape shape = g.shape(features);
  return ops::reshape(g, ops::embedding(g, e.table, features),
                      {shape[0], shape[1] * g.shape(e.table)[1]});
}

// x W for the embeddings x of one part of the features. W's product with every row of the table
// that may stand in a column is kept, if these are few enough, and looked up (Chen & Manning
// 2014, 3.5).
Value part_product(const nn::Net& net, const Embedded& e, const FeaturePart& part) {
  Graph& g = net.graph;
  const std::int64_t width = g.shape(e.table)[1], hidden = g.shape(e.weight)[1];
  const Value features = ops::slice_axis(g, e.features, 1, part.column, part.columns);
  const auto weight = [&] {
    return ops::slice_axis(g, e.weight, 0, part.column * width, part.columns * width);
  };
  if (part.columns * part.rows * hidden > kMostKept) {
    const Value kept =
        net.keep(fmt::format("weight{}", part.column), {part.columns * width, hidden}, weight);
    return ops::matmul(g, concat_of(g, e, features), kept);
  }
  const auto products = [&] {
    const Value rows = ops::slice_axis(g, e.table, 0, part.row, part.rows);
    return ops::matmul(g, ops::broadcast_to(g, rows, {part.columns, part.rows, width}),
                       ops::reshape(g, weight(), {part.columns, width, hidden}));
  };
  const Value kept =
      net.keep(fmt::format("products{}", part.column), {part.columns, part.rows, hidden}, products);
  return ops::embedding_bag(g, kept, features, part.row);
}

Value activated(Graph& g, Value x, ParserActivation activation) {
  if (activation == ParserActivation::kRelu) return ops::relu(g, x);
  return ops::mul(g, ops::square(g, x), x);
}

// The sentences to train on, and how many rows, which are transitions, the others have.
struct TrainingTreebank {
  Treebank treebank;
  std::vector<task::Skipped> skipped;

  explicit TrainingTreebank(const task::DataRequest& request)
      : treebank(load_treebank(request, task::Split::kTrain)) {
    const std::int64_t count = request.train_rows;
    std::int64_t tokens = 0;
    while (count > 0 && std::ssize(treebank.sentences) > count) {
      tokens += treebank.sentences.back().size();
      treebank.sentences.pop_back();
    }
    if (tokens == 0) return;
    skipped.push_back({2 * tokens, fmt::format("of sentences beyond the first {}", count)});
  }
};

}  // namespace

void DependencyParserOptions::validate() const {
  const bool has_norm = !nn::Norm::parse(norm).is_none();
  check(activation == ParserActivation::kRelu || has_norm || layers == 2, ErrorKind::kUsage,
        "activation: expected relu, a norm, or 2 layers, for cubes of cubes grow beyond all "
        "bounds, got cube");
}

std::vector<task::Input> DependencyParserNetwork::inputs(const task::Sizes& sizes) const {
  return parser_inputs(sizes.at(0), symbols_->classes().size());
}

nn::LayerOptions DependencyParserNetwork::layer_options() const {
  const nn::Norm norm = nn::Norm::parse(options_.norm);
  return {.bias = !norm.has_bias(), .weight_init = init_of(options_.init), .norm = norm};
}

Value DependencyParserNetwork::first_layer(nn::Net& net, Value features) const {
  Graph& g = net.graph;
  const std::int64_t width = options_.embedding;
  const Value table =
      net.parameter("embedding", {symbols_->rows(), width}, nn::uniform(options_.embedding_range));
  const nn::Linear fc1(net, "fc1", std::int64_t{kFeatures} * width, options_.hidden,
                       layer_options());
  const Embedded embedded{table, features, fc1.weight()};
  if (!net.keeps()) {
    return fc1(nn::dropout(net, concat_of(g, embedded, features), options_.input_dropout));
  }
  Value product;
  for (const FeaturePart& part : symbols_->parts()) {
    const Value of_part = part_product(net, embedded, part);
    product = product.valid() ? ops::add(g, product, of_part) : of_part;
  }
  return fc1.after_product(product);
}

Value DependencyParserNetwork::hidden(nn::Net& net, Value features) const {
  Value x = first_layer(net, features);
  for (std::int64_t i = 1;; ++i) {
    x = nn::dropout(net, activated(net.graph, x, options_.activation), options_.dropout);
    if (i + 1 == options_.layers) return x;
    x = nn::linear(net, fmt::format("fc{}", i + 1), x, options_.hidden, layer_options());
  }
}

task::Outputs DependencyParserNetwork::build(nn::Net& net, const task::Inputs& in) const {
  Graph& g = net.graph;
  const Value all = nn::linear(net, "logits", hidden(net, in["features"]),
                               symbols_->classes().size(), {.weight_init = init_of(options_.init)});
  const Value logits = ops::select(g, in["legal"], all, g.constant(kIllegal, net.dtype));
  task::Outputs outputs = task::classification(g, logits, in["label"]);
  outputs.metrics[0].name = "accuracy";
  outputs.predictions = {{"logits", logits}};
  return outputs;
}

std::unique_ptr<task::Decoder> DependencyParserNetwork::decoder(std::span<const std::string> lines,
                                                                std::int64_t) const {
  return std::make_unique<GreedyParser>(
      std::make_shared<const NumberedTreebank>(treebank_of_lines(lines), symbols_),
      kParsedTogether);
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

std::shared_ptr<const DependencyParserNetwork> DependencyParser::restored(
    const task::Assets& assets) const {
  return std::make_shared<const DependencyParserNetwork>(options_,
                                                         std::make_shared<const Symbols>(assets));
}

task::Prepared DependencyParser::prepare(const task::DataRequest& request,
                                         const task::Assets* known) const {
  // Every part has a file of its own: a network that is known does without that of training.
  auto training = std::make_shared<std::optional<TrainingTreebank>>();
  std::shared_ptr<const DependencyParserNetwork> network;
  if (known) {
    network = restored(*known);
  } else {
    *training = TrainingTreebank(request);
    network = std::make_shared<const DependencyParserNetwork>(
        options_, std::make_shared<const Symbols>((*training)->treebank, options_.min_count));
  }
  const auto rows = [=](task::Split split) {
    const auto numbered = [&](Treebank treebank, std::vector<task::Skipped> skipped) {
      return std::make_shared<TransitionRows>(
          std::make_shared<const NumberedTreebank>(std::move(treebank), network->symbols()),
          std::move(skipped));
    };
    if (split != task::Split::kTrain) return numbered(load_treebank(request, split), {});
    if (!*training) *training = TrainingTreebank(request);
    return numbered(std::move((*training)->treebank), std::move((*training)->skipped));
  };
  return {network, std::make_unique<data::DatasetSplits>(rows)};
}

}  // namespace keel::models
