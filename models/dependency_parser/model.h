// Greedy transition-based dependency parsing with an MLP (Chen & Manning 2014), in the form of Xu
// et al. (2019).
#pragma once

#include <memory>

#include "frontend/nn/layers.h"
#include "frontend/task/task.h"
#include "models/dependency_parser/symbols.h"

namespace keel::models {

enum class ParserActivation { kRelu, kCube };
constexpr auto choice_words(ParserActivation) {
  return std::to_array<std::string_view>({"relu", "cube"});
}

enum class ParserInit {
  kXavier,   // Xavier-uniform
  kUniform,  // U(-0.01, 0.01), as Chen & Manning
};
constexpr auto choice_words(ParserInit) {
  return std::to_array<std::string_view>({"xavier", "uniform"});
}

struct DependencyParserOptions {
  std::string norm = "layernorm";  // of every layer but the last
  ParserActivation activation = ParserActivation::kRelu;
  ParserInit init = ParserInit::kXavier;
  std::int64_t layers = 3;  // linear; 2 have one hidden layer between them (Chen & Manning)
  std::int64_t hidden = 512, embedding = 50;
  double embedding_range = 0.01;              // embeddings begin within +-
  double dropout = 0.2, input_dropout = 0.2;  // of hidden units, of the embeddings
  std::int64_t min_count = 2;                 // training words that occur less often are unknown

  static constexpr auto fields() {
    using T = DependencyParserOptions;
    return std::tuple{
        option("norm", &T::norm, "norm of every layer but the last", norm_name()),
        option("activation", &T::activation, "activation after the norm of a hidden layer"),
        option("init", &T::init,
               "initial weights: Xavier-uniform, or U(-0.01, 0.01) as in Chen & Manning"),
        option("layers", &T::layers, "linear layers; 2 have one hidden layer between them",
               between(2, 100)),
        option("hidden", &T::hidden, "units of a hidden layer", between(1, 1000000)),
        option("embedding", &T::embedding, "width of the vectors of words, tags and labels",
               between(1, 65536)),
        option("embedding_range", &T::embedding_range,
               "largest absolute value of the initial vectors", more_than(0, 100)),
        option("dropout", &T::dropout, "dropout rate of hidden units", fraction()),
        option("input_dropout", &T::input_dropout,
               "dropout rate of the vectors of words, tags and labels", fraction()),
        option("min_count", &T::min_count,
               "least number of occurrences in the training data; rarer words count as unknown",
               at_least(1))};
  }
  void validate() const;
};

// Features look up a table E, whose elements begin in U(-embedding_range, embedding_range):
//     x = dropout(E[features])                  (rows, 48 embedding)
//     h = dropout(f(norm(x W + b)))             layers - 1 times, f being ReLU or the cube
//     logits = h W + b                          (rows, 2 labels + 1)
// Transitions that are not legal have the probability 0, in training and in parsing. The loss is
// the cross entropy of the oracle's transitions.
class DependencyParserNetwork final : public task::NetworkOf<DependencyParserOptions> {
 public:
  DependencyParserNetwork(const DependencyParserOptions& options,
                          std::shared_ptr<const Symbols> symbols)
      : NetworkOf(options), symbols_(std::move(symbols)) {}

  const std::shared_ptr<const Symbols>& symbols() const { return symbols_; }

  task::Assets assets() const override { return symbols_->texts(); }
  std::vector<task::Input> inputs(const task::Sizes& sizes) const override;
  task::Sizes sizes(std::int64_t batch) const override { return {batch}; }
  task::Outputs build(nn::Net& net, const task::Inputs& in) const override;
  task::Answers answers() const override { return task::Answers::kAllLines; }
  std::unique_ptr<task::Decoder> decoder(std::span<const std::string> lines,
                                         std::int64_t first) const override;

 private:
  nn::LayerOptions layer_options() const;
  // norm(x W + b) of the first layer. An evaluation that keeps values adds it up from products of W
  // with rows of E: the same except for rounding.
  Value first_layer(nn::Net& net, Value features) const;
  Value hidden(nn::Net& net, Value features) const;

  std::shared_ptr<const Symbols> symbols_;
};

class DependencyParser final : public task::TaskWithOptions<DependencyParserOptions> {
 public:
  std::string_view name() const override { return "dependency_parser"; }
  std::string_view summary() const override {
    return "transition-based dependency parsing, MLP (Chen & Manning 2014, Xu et al. 2019)";
  }
  std::vector<task::MetricInfo> metrics() const override;
  // Reads data.train_rows sentences.
  task::Prepared prepare(const task::DataRequest& request,
                         const task::Assets* known) const override;
  std::shared_ptr<const task::Network> restore(const task::Assets& assets) const override {
    return restored(assets);
  }

 private:
  std::shared_ptr<const DependencyParserNetwork> restored(const task::Assets& assets) const;
};

}  // namespace keel::models
