// The MLP of Ba, Kiros, Hinton 2016: its size, where its norms are, and that it learns.
#include "models/mnist_mlp/model.h"
#include "tests/models/helpers.h"
#include "tests/support/checks.h"

namespace keel::models {
namespace {

Graph graph_of(const Settings& settings) { return train::build_step(small_job(settings)); }

const std::vector<std::string> kNorms{"none", "layernorm", "layernorm_simple", "batchnorm",
                                      "weightnorm"};

TEST_CASE("mnist_mlp: number of parameters") {
  const auto count = [](const std::string& norm) {
    return count_parameters(graph_of({"model.hidden=1000", "model.norm=" + norm}));
  };
  constexpr std::int64_t kWeights = 784 * 1000 + 1000 * 1000 + 1000 * 10;
  CHECK(count("layernorm") == 1798010);
  CHECK(count("layernorm") == kWeights + 10 + 2 * 2000);
  CHECK(count("layernorm_simple") == kWeights + 10 + 2000);
  CHECK(count("none") == kWeights + 10 + 2000);
  CHECK(count("weightnorm") == count("layernorm"));
  CHECK(count("batchnorm") == kWeights + 2 * 2000 + 20);
}

TEST_CASE("mnist_mlp: norms lie on hidden layers, batch norm on the logits too") {
  using Names = std::vector<std::string>;
  CHECK(names_of(graph_of({"model.layers=1"}), NodeKind::kParameter) ==
        Names{"fc1/weight", "fc1/norm/gain", "fc1/norm/bias", "logits/weight", "logits/bias"});
  CHECK(names_of(graph_of({"model.layers=1", "model.norm=batchnorm"}), NodeKind::kParameter) ==
        Names{"fc1/weight", "fc1/norm/gain", "fc1/norm/bias", "logits/weight", "logits/norm/gain",
              "logits/norm/bias"});
  CHECK(names_of(graph_of({"model.layers=1", "model.norm=batchnorm{bias=false}"}),
                 NodeKind::kParameter) == Names{"fc1/weight", "fc1/bias", "fc1/norm/gain",
                                                "logits/weight", "logits/bias",
                                                "logits/norm/gain"});
}

TEST_CASE("mnist_mlp: after the activation the norm stands, and the layer keeps its bias") {
  const auto ops_of = [](const std::string& placement) {
    const Graph g = graph_of({"model.layers=1", "model.norm=layernorm", placement});
    std::string order;
    for (int i = 0; i < g.size(); ++i) {
      if (!g.node(i).op) continue;
      const std::string name(g.node(i).op->name);
      if (name == "relu" || name == "layer_norm") order += name + " ";
    }
    return std::pair(order, names_of(g, NodeKind::kParameter).size());
  };
  CHECK(ops_of("model.placement=before") == std::pair(std::string("layer_norm relu "), 5UL));
  CHECK(ops_of("model.placement=after") == std::pair(std::string("relu layer_norm "), 6UL));
}

TEST_CASE("mnist_mlp: batchnorm_options apply to batch norm alone, and come first") {
  const auto printed = [](const Settings& settings) {
    const Graph g = graph_of(settings);
    std::string text;
    for (int i = 0; i < g.size(); ++i) {
      if (g.node(i).op && g.node(i).op->name == "batch_norm") text += g.node(i).attrs.text() + "\n";
    }
    return text;
  };
  const auto count = [](const std::string& text, std::string_view part) {
    int found = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
      ++found;
    }
    return found;
  };
  const std::string options = "model.batchnorm_options=keep=0.75,unbiased=true";
  CHECK(count(printed({"model.norm=batchnorm", options}), "keep=0.75 unbiased=true") == 3);
  CHECK(count(printed({"model.norm=batchnorm{keep=0.5}", options}), "keep=0.5 unbiased=true") == 3);
  CHECK(printed({"model.norm=layernorm", options}).empty());
}

TEST_CASE("mnist_mlp: every parameter has a gradient") {
  for (const std::string& norm : kNorms) {
    CAPTURE(norm);
    CHECK(idle_parameters(small_job({"model.norm=" + norm})).empty());
  }
}

TEST_CASE("mnist_mlp: learns 32 rows by heart with every norm") {
  for (const std::string& norm : kNorms) {
    CAPTURE(norm);
    CHECK(overfit(small_job({"model.hidden=32", "train.lr=0.01", "model.norm=" + norm}), 200) <
          0.02);
  }
}

TEST_CASE("mnist_mlp: refusals") {
  const auto refused = [](const std::string& setting, std::string_view part) {
    test::check_refused([&] { small_job({setting}); }, "model.", part);
  };
  refused("model.hidden=0", "model.hidden: expected 1 to 1000000, got 0");
  refused("model.layers=101", "model.layers: expected 1 to 100, got 101");
  refused("model.norm=grupnorm", "model.norm: 'grupnorm' is unknown");
  refused("model.norm=batchnorm{keep=a}", "expected a number");
  refused("model.placement=between", "before or after");
  test::check_refused(
      [] {
        small_job({"model.norm=weightnorm", "model.placement=after"});
      },
      "model.", "placement: expected before for weightnorm, which normalizes weights, got after");
}

}  // namespace
}  // namespace keel::models
