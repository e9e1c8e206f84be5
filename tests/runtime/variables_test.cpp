// Parameters and state in a backend's memory.
#include "src/runtime/variables.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "backends/reference/backend.h"
#include "tests/support/checks.h"

namespace keel::test {
namespace {

void normal(Tensor& t, const Philox& random) {
  std::uint64_t element = 0;
  for (float& x : t.as<float>()) x = float(random.normal(element++));
}

Graph graph_of(const std::vector<std::string>& names) {
  Graph g;
  for (const std::string& name : names) g.parameter(name, {DType::kF32, {2, 3}}, normal);
  return g;
}

TEST_CASE("variables: initial values depend on the seed and the name, not on the order") {
  reference::ReferenceBackend backend;
  Variables a(backend, 7), b(backend, 7), c(backend, 8);
  a.declare(graph_of({"p", "q"}));
  b.declare(graph_of({"q"}));
  b.declare(graph_of({"p", "q"}));
  c.declare(graph_of({"p"}));
  check_close(a.read("p"), b.read("p"), 0);
  check_close(a.read("q"), b.read("q"), 0);
  CHECK(a.read("p").at(0) != a.read("q").at(0));
  CHECK(a.read("p").at(0) != c.read("p").at(0));
  CHECK(a.read("p").at(0) == double(float(Philox(7, stream_of("p")).normal(0))));
}

TEST_CASE("variables: a second declaration keeps the value, another type is refused") {
  reference::ReferenceBackend backend;
  Variables variables(backend, 1);
  Graph g = graph_of({"p"});
  g.state("steps", {DType::kI32, {}}, {});
  variables.declare(g);
  CHECK(variables.all().size() == 2);
  CHECK(variables.at("p").kind == NodeKind::kParameter);
  CHECK(variables.at("steps").kind == NodeKind::kState);
  CHECK(variables.read("steps").at(0) == 0);
  variables.write("p", f64({2, 3}, {1, 2, 3, 4, 5, 6}));
  variables.declare(graph_of({"p"}));
  CHECK(variables.read("p").at(5) == 6);
  Graph other;
  other.parameter("p", {DType::kF32, {3, 2}}, {});
  check_refused([&] { variables.declare(other); }, "p: expected f32(2, 3), got f32(3, 2)");
}

TEST_CASE("variables: what a state may be is asked of what is written, not of its initial value") {
  reference::ReferenceBackend backend;
  Variables variables(backend, 1);
  Graph g;
  const auto negative = [](Tensor& t, const Philox&) { t.as<float>()[0] = -1; };
  g.state("var", {DType::kF32, {2}}, negative, kNotNegative);
  g.state("step", {DType::kI32, {}}, {}, kStepCount);
  variables.declare(g);
  CHECK(variables.read("var").at(0) == -1);
  variables.write("var", f64({2}, {0, 1e30}));
  check_refused(
      [&] {
        variables.write("var", f64({2}, {1, -0.5}));
      },
      "var: expected elements from 0 to inf, got -0.5", {}, ErrorKind::kBadInput);
  check_refused(
      [&] {
        variables.write("var", f64({2}, {NAN, 1}));
      },
      "var: expected elements from 0 to inf, got nan", {}, ErrorKind::kBadInput);
  CHECK(variables.read("var").at(1) == double(1e30f));
  check_refused([&] { variables.write("step", f64({}, {3})); },
                "step: expected whole numbers, got f64()", {}, ErrorKind::kBadInput);
  for (const std::int32_t step : {-1, std::numeric_limits<std::int32_t>::max()}) {
    check_refused([&] { variables.write("step", Tensor::of<std::int32_t>({}, {step})); },
                  "step: expected elements from 0 to 2147483646", {}, ErrorKind::kBadInput);
  }
}

TEST_CASE("variables: reading and writing convert between declared and stored types") {
  reference::ReferenceBackend backend;
  Variables variables(backend, 1);
  variables.declare(graph_of({"p"}));
  const Tensor exact = f64({2, 3}, {0.1, 0.2, 0.3, 0.4, 0.5, 0.6});
  variables.write("p", exact);
  CHECK(variables.read("p").dtype() == DType::kF32);
  check_close(variables.read("p"), exact.to(DType::kF32), 0);
  CHECK(variables.read("p", true).dtype() == DType::kF64);
  check_close(variables.read("p", true), exact, 0);
}

TEST_CASE("variables: unknown names and wrong shapes are refused") {
  reference::ReferenceBackend backend;
  Variables variables(backend, 1);
  variables.declare(graph_of({"p"}));
  check_refused([&] { variables.read("q"); }, "no parameter or state is called 'q'");
  check_refused([&] { variables.write("q", Tensor()); }, "no parameter or state is called 'q'");
  check_refused(
      [&] {
        variables.write("p", f64({3}, {1, 2, 3}));
      },
      "p: expected (2, 3), got (3)", "", ErrorKind::kBadInput);
}

}  // namespace
}  // namespace keel::test
