// Refusals of ops that are added from outside: an op that is added stays for the whole
// test program, so tests/install/check_install.py tries those that are taken. The gradient check.
#include "frontend/compare/cases/own_op.h"

#include <doctest/doctest.h>

#include "backends/reference/backend.h"
#include "frontend/compare/bounds/node_bounds.h"
#include "frontend/compare/cases/gradient_check.h"
#include "frontend/compare/cases/op_cases.h"
#include "frontend/nn/norm_table.h"
#include "models/registry.h"
#include "src/core/registry.h"
#include "src/ops/norm/detach_norm.h"
#include "src/ops/norm/layer_norm.h"
#include "src/ops/op_table.h"
#include "src/runtime/kernel_table.h"
#include "tests/support/checks.h"

namespace keel::compare {
namespace {

Prepared no_kernel(const NodeContext&) { return refuse("none"); }

TEST_CASE("own ops: a name that is taken is refused") {
  const OpInfo nameless{.name = ""};
  test::check_refused([] { add_op(kLayerNorm); }, "op: expected a new name, got 'layer_norm'");
  test::check_refused([&] { add_op(nameless); }, "op: expected a new name, got ''");
  test::check_refused(
      [] {
        enter({&kLayerNorm, {{"reference", no_kernel}}});
      },
      "op: expected a new name, got 'layer_norm'");
  nn::NormFacts facts;
  facts.name = "layernorm";
  const nn::NormRow row{facts, -1, "", nullptr};
  test::check_refused([&] { nn::add_norm(row); }, "norm: expected a new name, got 'layernorm'");
}

TEST_CASE("own ops: nothing is added while a program runs") {
  const std::string why = ": expected before the program starts, got 'own' while it runs";
  const OpInfo own{.name = "own"};
  nn::NormFacts facts;
  facts.name = "own";
  const auto make = models::find_model("mnist_mlp").make;
  {
    const FrozenRegistries outer;
    { const FrozenRegistries inner; }
    test::check_refused([&] { add_op(own); }, "op" + why);
    test::check_refused([] { add_kernel("reference", "own", no_kernel); }, "kernel" + why);
    test::check_refused([] { add_rule("own", nullptr); }, "bound" + why);
    test::check_refused([] { add_case("own", nullptr); }, "op case" + why);
    test::check_refused([&] { nn::add_norm({facts, -1, "", nullptr}); }, "norm" + why);
    test::check_refused([&] { models::add_model({"own", make, {{"laptop", ""}}}); }, "model" + why);
  }
  CHECK(find_op("own") == nullptr);
  test::check_refused([] { add_op(kLayerNorm); }, "op: expected a new name, got 'layer_norm'");
}

TEST_CASE("own ops: kernels are those of the reference and of onednn") {
  const OpInfo own{.name = "own"};
  test::check_refused(
      [&] {
        enter({&own, {{"onednn", no_kernel}}});
      },
      "[own] kernels: expected one of reference, got none");
  test::check_refused(
      [&] {
        enter({&own, {{"reference", no_kernel}, {"cuda", no_kernel}}});
      },
      "[own] kernels: expected those of reference and onednn, got one of cuda");
  CHECK(find_op("own") == nullptr);
}

TEST_CASE("own tasks: a name that is taken and a task without recipes are refused") {
  const auto make = models::find_model("mnist_mlp").make;
  test::check_refused(
      [&] {
        models::add_model({"mnist_mlp", make, {{"laptop", ""}}});
      },
      "task: expected a new name, got 'mnist_mlp'");
  test::check_refused(
      [&] {
        models::add_model({"", make, {{"laptop", ""}}});
      },
      "task: expected a new name, got ''");
  test::check_refused(
      [&] {
        models::add_model({"own", make, {}});
      },
      "task own: expected a recipe, got none");
}

// Layer norm is differentiated exactly; detach norm takes its statistics for constants.
TEST_CASE("gradient check: an exact backward is near, another one is not") {
  reference::ReferenceBackend backend;
  const auto error = [&](auto normalize) {
    OpCase op_case{.inputs = {}, .build = [&](Graph& g, const std::vector<Value>& inputs) {
                     return std::vector<Value>{normalize(g, inputs[0])};
                   }};
    op_case.inputs.push_back(random_normal({3, 7}, 1));
    return gradient_error(backend, op_case);
  };
  CHECK(error([](Graph& g, Value x) { return ops::layer_norm(g, x, {}); }) < 1e-7);
  CHECK(error([](Graph& g, Value x) { return ops::detach_norm(g, x, {}); }) > 0.1);
}

}  // namespace
}  // namespace keel::compare
