// A norm that is applied many times: one set of parameters, states that are carried on, masks.
#include "frontend/nn/norm_layer.h"

#include "frontend/nn/layers.h"
#include "src/ops/layout.h"
#include "tests/frontend/nn/helpers.h"
#include "tests/support/checks.h"

namespace keel::nn {
namespace {

constexpr std::int64_t kSiteRows = 6, kFeatures = 5;

// Applies one norm to the halves of x (2 * kSiteRows, kFeatures), both at time step 0.
Layer twice(const std::string& text) {
  return [norm = Norm::parse(text)](Net& net, Value x) {
    const NormLayer site(net, "n", norm);
    const Value first = site(ops::slice_axis(net.graph, x, 0, 0, kSiteRows));
    return ops::concat(net.graph,
                       {first, site(ops::slice_axis(net.graph, x, 0, kSiteRows, kSiteRows))}, 0);
  };
}

Tensor half(const Tensor& x, std::int64_t which) {
  Tensor result(DType::kF64, {kSiteRows, kFeatures});
  for (std::int64_t e = 0; e < result.elements(); ++e) {
    result.as<double>()[std::size_t(e)] = x.at(which * result.elements() + e);
  }
  return result;
}

// The states that the backward changes go from the last application to the first, so two steps in a
// row leave different values.
bool is_of_backward(const std::string& state) {
  return state.ends_with("/nu") || state.ends_with("/gz");
}

TEST_CASE("norm site: two applications leave the states of two steps in a row") {
  for (const NormFacts& facts : norm_facts()) {
    if (facts.state == "-") continue;
    CAPTURE(facts.name);
    LayerRun both(twice(facts.name), {2 * kSiteRows, kFeatures});
    LayerRun one([norm = Norm::parse(facts.name)](Net& net, Value x) { return norm(net, "n", x); },
                 {kSiteRows, kFeatures});
    both.program->run();
    const Tensor x = test::random_normal({2 * kSiteRows, kFeatures}, 5, 2, 3),
                 y = both.program->fetch("y", true);
    for (std::int64_t which : {0, 1}) {
      one.program->feed("x", half(x, which));
      one.program->run();
      if (facts.name == "noisybatchnorm") continue;  // the applications draw noise of their own
      test::check_close(half(y, which), one.program->fetch("y", true), 1e-13);
    }
    CHECK(both.parameters == one.parameters);
    CHECK(both.states == one.states);
    for (const std::string& state : one.states) {
      CAPTURE(state);
      if (!is_of_backward(state)) test::check_close(both.read(state), one.read(state), 1e-13);
    }
  }
}

TEST_CASE("norm site: a probe carries states on and keeps none of them") {
  LayerRun train(twice("powernorm"), {2 * kSiteRows, kFeatures});
  LayerRun probe(twice("powernorm"), {2 * kSiteRows, kFeatures}, Mode::kProbe);
  for (LayerRun* run : {&train, &probe}) run->program->run();
  test::check_close(probe.program->fetch("y", true), train.program->fetch("y", true), 0);
  CHECK(probe.graph.updates().empty());
  CHECK(train.graph.updates().size() == 3);  // psi2, nu and step, once each
}

TEST_CASE("norm site: nu is changed by the backwards of all applications") {
  LayerRun both(twice("powernorm{mode=paper,heads=0,alpha_b=0.5}"), {2 * kSiteRows, kFeatures});
  LayerRun last(
      [site = Norm::parse("powernorm{mode=paper,heads=0,alpha_b=0.5}")](Net& net, Value x) {
        const NormLayer norm(net, "n", site);
        norm(ops::slice_axis(net.graph, x, 0, 0, kSiteRows));  // the loss does not see it
        return norm(ops::slice_axis(net.graph, x, 0, kSiteRows, kSiteRows));
      },
      {2 * kSiteRows, kFeatures});
  for (LayerRun* run : {&both, &last}) run->program->run();
  double difference = 0;
  for (std::int64_t c = 0; c < kFeatures; ++c) {
    CHECK(last.read("n/nu").at(c) != 0);
    difference = std::max(difference, std::abs(both.read("n/nu").at(c) - last.read("n/nu").at(c)));
  }
  CHECK(difference > 0.01);
}

TEST_CASE("norm site: the gradient of a parameter is the sum over its applications") {
  for (const char* norm : {"layernorm", "rmsnorm{bias=true}", "scalenorm", "batchnorm",
                           "groupnorm{groups=1}", "pn_v"}) {
    CAPTURE(std::string(norm));
    LayerRun run(twice(norm), {2 * kSiteRows, kFeatures}, Mode::kProbe);
    check_central_differences(run);
  }
}

// x (2, 4, kFeatures) through a linear layer with a norm, and the same with other numbers where
// there is padding.
struct Padded {
  static Shape shape() { return {2, 4, kFeatures}; }
  static bool is_real(std::int64_t row) { return row % 4 < 3 - row / 4; }

  LayerRun run;
  explicit Padded(const std::string& text) : run(layer(text), shape()) {}

  static Layer layer(const std::string& text) {
    return [norm = Norm::parse(text)](Net& net, Value x) {
      Tensor rows(DType::kU8, {2, 4});
      for (std::int64_t r = 0; r < 8; ++r) rows.as<std::uint8_t>()[std::size_t(r)] = is_real(r);
      const Linear fc(net, "fc", kFeatures, 6, {.norm = norm});
      const Value mask = net.graph.constant(std::move(rows));
      const Value y = fc(x, {.mask = mask});
      const Value kept = ops::cast(net.graph, ops::reshape(net.graph, mask, {2, 4, 1}), net.dtype);
      return ops::mul(net.graph, y, kept);
    };
  }

  // Everything that comes of one step.
  std::vector<std::pair<std::string, Tensor>> step(double padding) {
    Tensor x = test::random_normal(shape(), 5, 2, 3);
    for (std::int64_t e = 0; e < x.elements(); ++e) {
      if (!is_real(e / kFeatures)) x.as<double>()[std::size_t(e)] = padding + double(e);
    }
    run.program->feed("x", x);
    run.program->run();
    std::vector<std::pair<std::string, Tensor>> results;
    for (const NamedValue& output : run.graph.outputs()) {
      results.emplace_back(output.name, run.program->fetch(output.name, true).clone());
    }
    for (const std::string& state : run.states) results.emplace_back(state, run.read(state));
    return results;
  }
};

TEST_CASE("norm site: what stands in padding does not matter, after a linear layer") {
  for (const NormFacts& facts : norm_facts()) {
    CAPTURE(facts.name);
    Padded small(facts.any_width()), large(facts.any_width());
    const auto expected = small.step(0), got = large.step(1e3);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      CAPTURE(expected[i].first);
      test::check_close(got[i].second, expected[i].second, 0);
    }
  }
}

TEST_CASE("norm site: a copy is the same norm, and a norm of weights needs a layer") {
  Graph g;
  Net net{.graph = g};
  const Value x = g.input("x", {DType::kF32, {4, 3}});
  const NormLayer site(net, "n", Norm::parse("batchnorm")), copy = site;
  site(x);
  copy(x);
  CHECK(g.leaves(NodeKind::kParameter).size() == 2);
  test::check_refused([&] { NormLayer(net, "m", Norm::parse("weightnorm")); },
                      "[weightnorm] it acts on a layer's weight: expected a layer before m");
  const Value wide = g.input("wide", {DType::kF32, {4, 7}});
  test::check_refused([&] { site(wide); }, "[batch_norm] gain: expected (7), got (3)");
}

}  // namespace
}  // namespace keel::nn
