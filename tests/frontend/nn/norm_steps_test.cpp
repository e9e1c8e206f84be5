// Norms inside a recurrent network: statistics of every step, gain and bias of all.
#include <doctest/doctest.h>

#include <cmath>

#include "frontend/nn/norm_layer.h"
#include "src/ops/layout.h"
#include "tests/frontend/nn/helpers.h"
#include "tests/support/checks.h"

namespace keel::nn {
namespace {

using Names = std::vector<std::string>;
constexpr std::int64_t kStepRows = 6, kStepFeatures = 2;

// A network of `length` steps; its input x (length * rows, features) holds one step after the
// other.
Layer network(std::int64_t length, const std::string& norm = "recurrentbatchnorm",
              bool masked = false) {
  return [=, norm = Norm::parse(norm)](Net& net, Value x) {
    const NormLayer site(net, "n", norm);
    const Value mask =
        masked ? net.graph.constant(Tensor::of<std::uint8_t>({kStepRows}, {1, 1, 0, 1, 0, 1}))
               : Value{};
    std::vector<Value> y;
    for (std::int64_t t = 0; t < length; ++t) {
      y.push_back(site(ops::slice_axis(net.graph, x, 0, t * kStepRows, kStepRows), {t, mask}));
    }
    return ops::concat(net.graph, y, 0);
  };
}

// Feature c of step t in a tensor of the network.
std::vector<double> column(const Tensor& value, std::int64_t t, std::int64_t c) {
  std::vector<double> result;
  for (std::int64_t row = 0; row < kStepRows; ++row) {
    result.push_back(value.at((t * kStepRows + row) * kStepFeatures + c));
  }
  return result;
}

struct StepMoments {
  double mean = 0, var = 0;
};
StepMoments step_moments(const std::vector<double>& values) {
  StepMoments m;
  for (double v : values) m.mean += v / double(values.size());
  for (double v : values) m.var += (v - m.mean) * (v - m.mean) / double(values.size());
  return m;
}

Tensor input(std::int64_t length) {
  return test::random_normal({length * kStepRows, kStepFeatures}, 5, 2, 3);
}

TEST_CASE("norm steps: a step is normalized by its own batch and keeps its own averages") {
  LayerRun run(network(3, "recurrentbatchnorm{keep=0.75}"), {3 * kStepRows, kStepFeatures});
  CHECK(run.parameters == Names{"n/gain", "n/bias"});
  CHECK(run.states == Names{"n/t0/mean", "n/t0/var", "n/t0/seen", "n/t1/mean", "n/t1/var",
                            "n/t1/seen", "n/t2/mean", "n/t2/var", "n/t2/seen"});
  run.program->run();
  const Tensor y = run.program->fetch("y", true), x = input(3);
  for (std::int64_t t = 0; t < 3; ++t) {
    for (std::int64_t c = 0; c < kStepFeatures; ++c) {
      const StepMoments of_x = step_moments(column(x, t, c)), of_y = step_moments(column(y, t, c));
      CHECK(std::abs(of_y.mean) < 1e-12);
      CHECK(of_y.var == doctest::Approx(0.01).epsilon(1e-4));  // gain 0.1
      const std::string step = fmt::format("n/t{}/", t);
      CHECK(run.read(step + "mean").at(c) == doctest::Approx(0.25 * of_x.mean).epsilon(1e-6));
      CHECK(run.read(step + "var").at(c) == doctest::Approx(0.75 + 0.25 * of_x.var).epsilon(1e-6));
    }
    CHECK(run.read(fmt::format("n/t{}/seen", t)).at(0) == 1);
  }
  check_every_parameter_learns(run);
}

TEST_CASE("norm steps: a probe normalizes like training and keeps nothing") {
  LayerRun train(network(2), {2 * kStepRows, kStepFeatures});
  LayerRun probe(network(2), {2 * kStepRows, kStepFeatures}, Mode::kProbe);
  train.program->run();
  probe.program->run();
  test::check_close(probe.program->fetch("y", true), train.program->fetch("y", true), 0);
  CHECK(probe.read("n/t1/mean").at(0) == 0);
  CHECK(probe.read("n/t1/seen").at(0) == 0);
}

// Steps 0 and 2 were trained, 1 and 3 not; four steps have statistics.
TEST_CASE("norm steps: evaluation takes the last step before it that was trained") {
  LayerRun run(network(6, "recurrentbatchnorm{eps=0,gain_init=1,steps=4}"),
               {6 * kStepRows, kStepFeatures}, Mode::kEvaluate);
  for (int t : {0, 2}) {
    const std::string step = fmt::format("n/t{}/", t);
    run.variables.write(step + "seen", test::f64({}, {3}));
    run.variables.write(step + "mean", test::f64({2}, {1.0 + t, -1.0 - t}));
    run.variables.write(step + "var", test::f64({2}, {4.0 * (t + 1) * (t + 1), 0.25}));
  }
  CHECK_FALSE(run.graph.find_leaf("n/t4/mean").valid());
  run.program->run();
  const Tensor y = run.program->fetch("y", true), x = input(6);
  const int used[] = {0, 0, 2, 2, 2, 2};
  for (std::int64_t t = 0; t < 6; ++t) {
    const double of = used[t];
    for (std::int64_t row = 0; row < kStepRows; ++row) {
      const std::int64_t i = (t * kStepRows + row) * kStepFeatures;
      CHECK(y.at(i) == doctest::Approx((x.at(i) - 1 - of) / (2 * (of + 1))).epsilon(1e-6));
      CHECK(y.at(i + 1) == doctest::Approx((x.at(i + 1) + 1 + of) / 0.5).epsilon(1e-6));
    }
  }
}

TEST_CASE("norm steps: steps after the last leave no statistics") {
  LayerRun run(network(3, "recurrentbatchnorm{gain_init=1,steps=1}"),
               {3 * kStepRows, kStepFeatures});
  CHECK(run.states == Names{"n/t0/mean", "n/t0/var", "n/t0/seen"});
  run.program->run();
  const Tensor y = run.program->fetch("y", true);
  CHECK(step_moments(column(y, 2, 1)).var == doctest::Approx(1).epsilon(1e-4));
  CHECK(run.read("n/t0/mean").at(0) ==
        doctest::Approx(0.01 * step_moments(column(input(3), 0, 0)).mean));
}

TEST_CASE("norm steps: rows that a mask leaves out take no part") {
  LayerRun run(network(2, "recurrentbatchnorm", true), {2 * kStepRows, kStepFeatures});
  run.program->run();
  const Tensor y = run.program->fetch("y", true);
  for (std::int64_t t : {0, 1}) {
    const std::vector<double> of_x = column(input(2), t, 0), of_y = column(y, t, 0);
    CHECK(of_y[2] == 0);
    CHECK(of_y[4] == 0);
    const double mean = (of_x[0] + of_x[1] + of_x[3] + of_x[5]) / 4;
    CHECK(run.read(fmt::format("n/t{}/mean", t)).at(0) == doctest::Approx(0.01 * mean));
  }
}

TEST_CASE("norm steps: a step of padding alone was not trained") {
  const auto padded = [](Net& net, Value x) {
    const Value none = net.graph.constant(Tensor(DType::kU8, Shape{kStepRows}));
    return Norm::parse("recurrentbatchnorm")(net, "n", x, none);
  };
  LayerRun run(padded, {kStepRows, kStepFeatures});
  run.program->run();
  CHECK(run.read("n/t0/seen").at(0) == 0);
  CHECK(run.read("n/t0/mean").at(0) == 0);
  CHECK(run.read("n/t0/var").at(1) == 1);
}

TEST_CASE("norm steps: options and refusals") {
  const Layer plain = network(1, "recurrentbatchnorm{gain=false,bias=false}");
  CHECK(LayerRun(plain, {kStepRows, kStepFeatures}).parameters.empty());
  test::check_refused([] { Norm::parse("recurrentbatchnorm{steps=0}"); },
                      "norm recurrentbatchnorm: option steps: expected >= 1, got 0");
  test::check_refused(
      [] {
        Graph g;
        Net net{.graph = g};
        const Value x = g.input("x", {DType::kF32, {4, 2}});
        NormLayer(net, "n", Norm::parse("layernorm"))(x, {.t = -1});
      },
      "[layernorm] t: expected >= 0, got -1");
}

TEST_CASE("norm steps: every norm over the batch has statistics of its own for every step") {
  LayerRun run(network(2, "batchnorm{keep=0.5}"), {2 * kStepRows, kStepFeatures});
  CHECK(run.parameters == Names{"n/gain", "n/bias"});
  CHECK(run.states == Names{"n/running_mean", "n/running_var", "n/t1/running_mean",
                            "n/t1/running_var", "n/t1/seen"});
  run.program->run();
  const Tensor x = input(2);
  for (std::int64_t c = 0; c < kStepFeatures; ++c) {
    const std::string names[] = {"n/running_mean", "n/t1/running_mean"};
    for (std::int64_t t : {0, 1}) {
      CHECK(run.read(names[t]).at(c) ==
            doctest::Approx(0.5 * step_moments(column(x, t, c)).mean).epsilon(1e-6));
    }
  }
  CHECK(run.read("n/t1/seen").at(0) == 1);
  CHECK(LayerRun(network(2, "layernorm"), {2 * kStepRows, kStepFeatures}).states.empty());
}

TEST_CASE("norm steps: evaluation takes the first step's statistics where no other was trained") {
  LayerRun run(network(3, "pn_v{eps=0}"), {3 * kStepRows, kStepFeatures}, Mode::kEvaluate);
  run.variables.write("n/psi2", test::f64({2}, {4, 4}));
  run.variables.write("n/t2/psi2", test::f64({2}, {16, 16}));
  run.variables.write("n/t2/seen", test::f64({}, {1}));
  run.program->run();
  const Tensor y = run.program->fetch("y", true), x = input(3);
  const double used[] = {2, 2, 4};
  for (std::int64_t i = 0; i < y.elements(); ++i) {
    const auto t = std::size_t(i / (kStepRows * kStepFeatures));
    CHECK(y.at(i) == doctest::Approx(x.at(i) / used[t]).epsilon(1e-6));
  }
}

// The same numbers by name in a network that is not recurrent, and over a whole sequence.
TEST_CASE("norm steps: by name it is step 0, and a sequence norm that of all steps") {
  const auto layer = [](const std::string& text) {
    return [norm = Norm::parse(text)](Net& net, Value x) { return norm(net, "n", x); };
  };
  LayerRun step(layer("recurrentbatchnorm"), {2, 3, kStepFeatures});
  LayerRun sequence(layer("sequencebatchnorm{eps=1e-5}"), {2, 3, kStepFeatures});
  LayerRun batch(layer("batchnorm{gain_init=0.1,keep=0.99}"), {2, 3, kStepFeatures});
  for (LayerRun* run : {&step, &sequence, &batch}) run->program->run();
  const Tensor y = batch.program->fetch("y", true);
  test::check_close(step.program->fetch("y", true), y, 0);
  test::check_close(sequence.program->fetch("y", true), y, 0);
  test::check_close(step.read("n/t0/mean"), batch.read("n/running_mean"), 0);
  test::check_close(step.read("n/t0/var"), batch.read("n/running_var"), 0);
}

}  // namespace
}  // namespace keel::nn
