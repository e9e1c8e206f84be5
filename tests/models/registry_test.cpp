// The zoo by name.
#include "models/registry.h"

#include <doctest/doctest.h>

#include <set>

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

TEST_CASE("registry: unknown names are refused with the nearest") {
  test::check_refused([] { find_model("mnist_cn"); }, "model: 'mnist_cn'", "nearest: 'mnist_cnn'");
  test::check_refused([] { find_recipe(find_model("mnist_mlp"), "labtop"); },
                      "recipe of mnist_mlp: 'labtop'", "nearest: 'laptop'");
}

}  // namespace
}  // namespace keel::models
