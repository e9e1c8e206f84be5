// The zoo by name.
#include "models/registry.h"

#include <doctest/doctest.h>

#include <set>

#include "backends/backends.h"
#include "frontend/train/step_graph.h"
#include "src/runtime/program.h"
#include "tests/support/checks.h"

namespace keel::models {
namespace {

TEST_CASE("registry: every model is found by its own name and has recipes") {
  std::set<std::string> names;
  for (const ModelEntry& entry : all_models()) {
    CAPTURE(entry.name);
    CHECK(names.insert(entry.name).second);
    CHECK(entry.make()->name() == entry.name);
    CHECK(&find_model(entry.name) == &entry);
    CHECK_FALSE(entry.make()->summary().empty());
    for (const char* recipe : {"paper", "laptop"}) CHECK_FALSE(find_recipe(entry, recipe).empty());
  }
  CHECK(names.contains("mnist_mlp"));
  CHECK(names.contains("mnist_cnn"));
  CHECK(names.contains("dependency_parser"));
}

// The recipe's training step on built-in data, after the passes.
Graph step_of(const ModelEntry& entry, const Recipe& recipe, const Backend& backend) {
  train::Config config(entry.make());
  config.apply_toml(recipe.toml, recipe.name);
  // The built-in data has no fixed pixels, and 2,002 words.
  if (entry.name == "draw") config.set("model.binarize", "sampled");
  if (recipe.name.starts_with("wikitext")) config.set("model.cutoffs", "200,400,1000");
  return optimized_for(backend, train::build_step(train::Job(std::move(config))));
}

// At their full sizes networks have products of many more shapes than the tests of kernels.
TEST_CASE("registry: every recipe's training step is one that the backend runs" *
          doctest::test_suite("slow")) {
  const auto backend = make_backend(default_backend());
  for (const ModelEntry& entry : all_models()) {
    for (const Recipe& recipe : entry.recipes) {
      CAPTURE(entry.name);
      CAPTURE(recipe.name);
      const Graph step = step_of(entry, recipe, *backend);
      for (int i = 0; i < step.size(); ++i) {
        const Node& node = step.node(i);
        if (node.kind != NodeKind::kOp || is_view(node)) continue;
        CAPTURE(node.name);
        CHECK(backend->prepare({step, node}).refusal.empty());
      }
    }
  }
}

TEST_CASE("registry: a recipe is found by its former name, too") {
  const ModelEntry& entry = find_model("order_embeddings");
  CHECK(&find_recipe(entry, "made_up") == &find_recipe(entry, "synthetic"));
}

TEST_CASE("registry: unknown names are refused with the nearest") {
  test::check_refused([] { find_model("mnist_cn"); }, "task: 'mnist_cn'", "nearest: 'mnist_cnn'");
  test::check_refused([] { find_recipe(find_model("mnist_mlp"), "labtop"); },
                      "recipe of mnist_mlp: 'labtop'", "nearest: 'laptop'");
}

}  // namespace
}  // namespace keel::models
