// Values of leaves from step to step: parameters keep theirs, carries as long as their shape stays.
#include "frontend/compare/walk/backend_trace.h"

#include <doctest/doctest.h>

#include "backends/reference/backend.h"
#include "src/ops/elementwise.h"
#include "tests/support/checks.h"

namespace keel::compare {
namespace {

// p (1) = 3 and the carry h (n), both updated.
Graph step_of(std::int64_t n) {
  Graph g;
  const auto three = [](Tensor& value, const Philox&) { value.as<float>()[0] = 3; };
  const Value p = g.parameter("p", {DType::kF32, {1}}, three), h = g.carry("h", {DType::kF32, {n}});
  g.mark_update(p, ops::scale(g, p, 2));
  g.mark_update(h, ops::add(g, h, p));
  return g;
}

struct Steps final : Subject {
  const std::string& name() const override { return name_; }
  SubjectStep at(std::int64_t) override { return {}; }
  const Feeds& first_values() const override { return none_; }
  std::uint64_t seed() const override { return 1; }

 private:
  std::string name_ = "steps";
  Feeds none_;
};

TEST_CASE("trace: a carry goes on from step to step, and begins anew in another shape") {
  const reference::ReferenceBackend backend;
  const Steps subject;
  const Graph two = step_of(2), three = step_of(3);
  BackendTrace trace(backend, /*declared=*/false);
  const auto run = [&](const Graph& graph, double p, double h) {
    trace.begin(graph, {&graph, {}}, subject);
    CHECK(trace.leaf("p").at(0) == p);
    CHECK(trace.leaf("h").at(1) == h);
    trace.set_next("p", test::f64({1}, {2 * p}));
    Tensor next(DType::kF64, graph.node(graph.find_leaf("h")).outputs[0].shape);
    for (double& value : next.as<double>()) value = h + p;
    trace.set_next("h", std::move(next));
    trace.end();
  };
  run(two, 3, 0);
  run(two, 6, 3);
  run(three, 12, 0);
  run(three, 24, 12);
}

}  // namespace
}  // namespace keel::compare
