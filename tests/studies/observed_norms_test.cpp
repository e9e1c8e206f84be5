// The norms of a graph: all are found, by name, with what they are given and what they give back.
#include "studies/observed_norms.h"

#include <doctest/doctest.h>

#include "backends/backends.h"
#include "frontend/train/step_graph.h"
#include "src/ops/norm/layer_norm.h"
#include "src/ops/norm/pn_v.h"
#include "studies/memory_training.h"
#include "studies/mini_jobs.h"
#include "studies/residual_network.h"

namespace keel::study {
namespace {

constexpr std::string_view kSmallNet = R"(
[model]
train_rows = 64
test_rows = 16
blocks = 2
[train]
batch = 16
max_steps = 2
lr = 1e-3
)";

train::Job small_net(const std::string& norm, int steps = 0) {
  return mini_job(std::make_unique<Residual>(), kSmallNet, 7, {{"model.norm", norm}}, steps);
}

TEST_CASE("norm sites: every norm of the op is found, with its backward where there is one") {
  const Graph step = train::build_step(small_net("pn_v"));
  const std::vector<ObservedNorm> sites = observed_norms(step, kPnV);
  REQUIRE(sites.size() == 3);
  const char* names[] = {"block1/norm", "block2/norm", "norm"};
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(sites[i].name == names[i]);
    CHECK(step.node(sites[i].forward).op == &kPnV);
    REQUIRE(sites[i].backward > sites[i].forward);
    CHECK(step.node(sites[i].backward).op == &kPnVBackward);
    CHECK(step.node(sites[i].backward).inputs[PnVBackwardInput::kX] ==
          step.node(sites[i].forward).inputs[PnVInput::kX]);
  }
  CHECK(observed_norms(step, kLayerNorm).empty());
  const Graph forward = train::build_evaluate(small_net("pn_v"), {16});
  CHECK(observed_norms(forward, kPnV).size() == 3);
  CHECK(observed_norms(forward, kPnV)[0].backward == -1);
}

// y = x / psi + bias at first, for gain is 1 and bias 0.
TEST_CASE(
    "norm sites: a value that is marked is there after every run, and a pass changes nothing") {
  const auto backend = make_backend("reference");
  const train::Job job = small_net("pn_v", 3);
  Training training(*backend, job);
  ObservedNorm first;
  int runs = 0;
  const auto mark_all = [&](Graph& g) {
    first = observed_norms(g, kPnV)[0];
    mark(g, first, "x", g.node(first.forward).inputs[PnVInput::kX]);
    mark(g, first, "y", {first.forward, PnVOutput::kY});
    mark(g, first, "rstd", {first.forward, PnVOutput::kRstd});
  };
  const auto look = [&](const Program& program) {
    ++runs;
    const Tensor x = fetch(program, first, "x"), y = fetch(program, first, "y");
    const Tensor rstd = fetch(program, first, "rstd");
    CHECK(x.shape() == Shape{16, 64});
    for (std::int64_t i = 0; i < x.elements(); ++i) {
      CHECK(y.at(i) == doctest::Approx(x.at(i) * rstd.at(i % 64)));
    }
  };
  pass_over(*backend, training.variables(), job, {mark_all, look});
  CHECK(runs == 4);
  CHECK(training.variables().read("block1/norm/psi2").at(0) == 1);
  CHECK(training.traces().empty());
  runs = 0;
  training.run({.look = [&](const TrainedStep&) { ++runs; }});
  CHECK(runs == 3);
  CHECK(training.variables().read("block1/norm/psi2").at(0) != 1);
  CHECK(training.traces().at("loss").size() == 3);
}

}  // namespace
}  // namespace keel::study
