// Graphs of a run: inputs, outputs, and that gathered gradients equal those of one large batch.
#include "frontend/train/step_graph.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "backends/reference/backend.h"
#include "frontend/nn/init.h"
#include "frontend/train/feeder.h"
#include "models/mnist_mlp/model.h"
#include "src/ops/optimizer_step.h"
#include "src/ops/row_gradient.h"
#include "src/runtime/program.h"
#include "tests/support/checks.h"
#include "tests/support/small_run.h"

namespace keel::train {
namespace {

using test::small_job;

std::vector<std::string> inputs_of(const Graph& g) {
  std::vector<std::string> names;
  for (int i = 0; i < g.size(); ++i) {
    if (g.node(i).kind == NodeKind::kInput) names.push_back(g.node(i).name);
  }
  std::ranges::sort(names);
  return names;
}

std::vector<std::string> outputs_of(const Graph& g) {
  std::vector<std::string> names;
  for (const NamedValue& output : g.outputs()) names.push_back(output.name);
  std::ranges::sort(names);
  return names;
}

TEST_CASE("step graph: inputs and outputs of each graph") {
  using Names = std::vector<std::string>;
  const Job job = small_job({"train.accumulate=2"});
  CHECK(inputs_of(build_step(job)) == Names{"first_row", "image", "label", "lr", "step", "weight"});
  CHECK(outputs_of(build_step(job)) == Names{"grad_norm", "loss"});
  CHECK(inputs_of(build_accumulate(job, {32})) ==
        Names{"first_row", "image", "label", "step", "weight"});
  CHECK(outputs_of(build_accumulate(job, {32})) == Names{"loss"});
  const Graph evaluate = build_evaluate(job, {5});
  CHECK(inputs_of(evaluate) == Names{"image", "label", "weight"});
  CHECK(outputs_of(evaluate) == Names{"loss", "metric/error/sum", "prediction/logits"});
  CHECK(evaluate.type(evaluate.find_leaf("image")) == TensorType{DType::kF32, {5, 784}});
}

TEST_CASE("step graph: what layers monitor is an output for who asks") {
  using Names = std::vector<std::string>;
  const auto watched = [](const std::string& norm) {
    std::vector<nn::Monitor> monitors;
    const Graph g = build_step(small_job({"model.norm=" + norm, "model.layers=1"}), &monitors);
    Names names;
    for (std::size_t i = 0; i < monitors.size(); ++i) {
      CHECK(std::ranges::count(outputs_of(g), monitor_output(i)) == 1);
      names.push_back(monitors[i].layer + ": " + monitors[i].name);
    }
    CHECK(g.outputs().size() == 2 + monitors.size());
    return names;
  };
  CHECK(watched("powernorm") ==
        Names{"fc1/norm: powernorm.contraction", "fc1/norm: powernorm.nu_max",
              "logits/norm: powernorm.contraction", "logits/norm: powernorm.nu_max"});
  CHECK(watched("layernorm").empty());
  CHECK(build_step(small_job({"model.norm=powernorm"})).outputs().size() == 2);
}

TEST_CASE("step graph: evaluation changes nothing") {
  for (const char* norm : {"layernorm", "batchnorm"}) {
    const Job job = small_job({std::string("model.norm=") + norm});
    CHECK(build_evaluate(job, {4}).updates().empty());
  }
}

TEST_CASE("step graph: first values from data, for the layers that ask for them") {
  const auto updated = [](const std::string& norm) {
    const Job job = small_job({"model.norm=" + norm, "model.layers=1"});
    const Graph g = build_initialize(job, {32});
    std::vector<std::string> names;
    for (const Update& update : g.updates()) names.push_back(g.node(update.leaf).name);
    return names;
  };
  CHECK(updated("weightnorm") == std::vector<std::string>{"fc1/norm/gain", "fc1/bias"});
  for (const char* norm : {"layernorm", "batchnorm", "powernorm", "mabn{centralize=true}"}) {
    CHECK(updated(norm).empty());
  }
}

TEST_CASE("step graph: a step updates every parameter, moment and running statistic") {
  const Graph g = build_step(small_job({"model.norm=batchnorm"}));
  std::vector<Value> updated;
  for (const Update& update : g.updates()) updated.push_back(update.leaf);
  for (int i = 0; i < g.size(); ++i) {
    const NodeKind kind = g.node(i).kind;
    if (kind != NodeKind::kParameter && kind != NodeKind::kState) continue;
    CAPTURE(g.node(i).name);
    CHECK(std::ranges::count(updated, Value{i, 0}) == 1);
  }
}

// How many nodes of a training step make rows of gradients, and how many updates are lazy.
struct RowNodes {
  int sums = 0, lazy = 0;

  explicit RowNodes(const test::Settings& settings) {
    const Job job = small_job(settings, "skip_thoughts");
    const Graph g = build_step(job, job.network().sizes(job.train().batch));
    for (int i = 0; i < g.size(); ++i) {
      const Node& node = g.node(i);
      sums += node.op == &kSumGroups;
      lazy += node.op == &kAdamStep && node.attrs.as<AdamAttrs>().lazy;
    }
  }
};

TEST_CASE("step graph: tables have gradients as rows where they are large, or updates are lazy") {
  const test::Settings lazy{"train.embedding_updates=lazy"};
  const RowNodes few({}), all(lazy),
      by_sgd({"train.embedding_updates=lazy", "train.optimizer=sgd"});
  CHECK(few.sums == 0);
  CHECK(few.lazy == 0);
  CHECK(all.sums > 1);
  CHECK(all.lazy == 1);
  CHECK(by_sgd.sums == all.sums);
  CHECK(RowNodes({"train.accumulate=2"}).sums == 0);
  test::check_refused(
      [&] {
        test::small_config({"train.embedding_updates=lazy", "train.accumulate=2"});
      },
      "train.embedding_updates: expected exact with accumulate > 1, got lazy");
}

// Trains on the reference backend: `updates` updates of job.accumulate micro-batches each, all
// from the rows 0, 1, 2, ....
struct Trained {
  reference::ReferenceBackend backend;
  Variables variables{backend, 1};
  double loss = 0;

  Trained(const Job& job, int updates) {
    test::Rows data(job);
    Program step(backend, variables, build_step(job), {.guard = "grad_norm"});
    Program gather(backend, variables, build_accumulate(job, {job.train().batch}));
    step.feed("lr", Tensor::scalar(0.01f));
    std::vector<std::int64_t> rows(std::size_t(job.train().batch));
    std::int64_t next = 0;
    for (int update = 0; update < updates; ++update) {
      step.feed("step", Tensor::of<std::int32_t>({}, {update}));
      for (std::int64_t i = 1; i <= job.train().accumulate; ++i) {
        Program& program = i == job.train().accumulate ? step : gather;
        for (std::int64_t& row : rows) row = next++;
        data.feed(program, rows);
        const double items = double(job.train().accumulate * job.train().batch);
        program.feed("weight", Tensor::scalar(float(1 / items)));
        program.run();
        loss += program.scalar("loss") / updates;
      }
    }
  }
};

TEST_CASE("step graph: four gathered batches of 16 equal one of 64" * doctest::test_suite("slow")) {
  for (const char* clip : {"none", "global", "per_tensor", "element"}) {
    CAPTURE(std::string(clip));
    const test::Settings common{std::string("train.clip=") + clip, "train.clip_limit=0.05",
                                "train.weight_decay=0.01"};
    test::Settings one = common, four = common;
    one.push_back("train.batch=64");
    four.insert(four.end(), {"train.batch=16", "train.accumulate=4"});
    const Trained whole(small_job(one), 3), parts(small_job(four), 3);
    CHECK(parts.loss == doctest::Approx(whole.loss).epsilon(1e-12));
    for (const auto& [name, variable] : whole.variables.all()) {
      CAPTURE(name);
      const Tensor a = whole.variables.read(name, true), b = parts.variables.read(name, true);
      double difference = 0, size = 0;
      for (std::int64_t e = 0; e < a.elements(); ++e) {
        difference = std::max(difference, std::abs(a.at(e) - b.at(e)));
        size = std::max(size, std::abs(a.at(e)));
      }
      CHECK(difference <= 1e-9 * size);
      CHECK((size > 0) != name.ends_with(".sum"));
    }
  }
}

TEST_CASE("step graph: gathered gradients are cleared by the update") {
  const Trained run(small_job({"train.batch=16", "train.accumulate=2"}), 1);
  int sums = 0;
  for (const auto& [name, variable] : run.variables.all()) {
    if (!name.ends_with(".sum")) continue;
    ++sums;
    const Tensor sum = run.variables.read(name, true);
    for (std::int64_t e = 0; e < sum.elements(); ++e) REQUIRE(sum.at(e) == 0);
  }
  CHECK(sums == 8);  // three layers and two norms
}

// A network with a parameter that its loss does not depend on.
struct SpareNetwork : models::MnistMlpNetwork {
  using MnistMlpNetwork::MnistMlpNetwork;
  task::Outputs build(nn::Net& net, const task::Inputs& in) const override {
    net.parameter("spare", {3, 2}, nn::ones());
    return MnistMlpNetwork::build(net, in);
  }
};

struct WithSpare : models::MnistMlp {
  std::shared_ptr<const task::Network> restore(const task::Assets&) const override {
    return std::make_shared<const SpareNetwork>(options_);
  }
};

TEST_CASE("step graph: a parameter without a gradient is neither decayed nor gathered") {
  for (const char* accumulate : {"1", "2"}) {
    CAPTURE(std::string(accumulate));
    const Job job =
        test::job_of(std::make_unique<WithSpare>(),
                     {"data.source=" + test::small_digits().string(), "model.hidden=16",
                      "train.batch=16", "train.weight_decay=0.1", "train.optimizer=adamw",
                      fmt::format("train.accumulate={}", accumulate)});
    const Trained run(job, 2);
    test::check_close(run.variables.read("spare", true), test::f64({3, 2}, {1, 1, 1, 1, 1, 1}), 0);
    CHECK_FALSE(run.variables.all().contains("spare.sum"));
    CHECK_FALSE(run.variables.all().contains("spare.m"));
    CHECK(run.variables.all().contains("fc1/weight.m"));
  }
}

}  // namespace
}  // namespace keel::train
