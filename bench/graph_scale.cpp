#include "bench/graph_scale.h"

#include <algorithm>
#include <ctime>
#include <functional>
#include <vector>

#include "backends/backends.h"
#include "src/autodiff/gradient.h"
#include "src/ops/elementwise.h"
#include "src/ops/layout.h"
#include "src/ops/matmul.h"
#include "src/ops/optimizer_step.h"
#include "src/ops/reduce.h"
#include "src/passes/pipeline.h"
#include "src/runtime/program.h"

namespace keel::bench {
namespace {

// Small sizes: what is measured does not depend on them.
constexpr std::int64_t kRows = 2, kWidth = 16;
constexpr int kLayers = 3;

Value weight(Graph& g, const std::string& name, const Shape& shape) {
  return g.parameter(name, {DType::kF32, shape}, nullptr);
}

// One LSTM layer: its parameters, and its state at the time step that was built last.
class Layer {
 public:
  explicit Layer(Graph& g)
      : input_(weight(g, g.prefix() + "input", {kWidth, 4 * kWidth})),
        recurrent_(weight(g, g.prefix() + "recurrent", {kWidth, 4 * kWidth})),
        bias_(weight(g, g.prefix() + "bias", {4 * kWidth})),
        h_(g.constant(Tensor(DType::kF32, {kRows, kWidth}))),
        c_(g.constant(Tensor(DType::kF32, {kRows, kWidth}))) {}

  Value step(Graph& g, Value x) {
    const Value both = ops::add(g, ops::matmul(g, x, input_), ops::matmul(g, h_, recurrent_));
    const Value z = ops::add(g, both, bias_);
    const auto gate = [&](int i) { return ops::slice_axis(g, z, 1, i * kWidth, kWidth); };
    const Value kept = ops::mul(g, ops::sigmoid(g, gate(0)), c_);
    const Value news = ops::mul(g, ops::sigmoid(g, gate(1)), ops::tanh(g, gate(2)));
    c_ = ops::add(g, kept, news);
    h_ = ops::mul(g, ops::sigmoid(g, gate(3)), ops::tanh(g, c_));
    return h_;
  }

 private:
  Value input_, recurrent_, bias_, h_, c_;
};

Value build_forward(Graph& g, int steps) {
  std::vector<Layer> layers;
  for (int i = 0; i < kLayers; ++i) {
    const auto scope = g.scope(fmt::format("layer{}", i));
    layers.emplace_back(g);
  }
  Value loss;
  for (int t = 0; t < steps; ++t) {
    Value x = g.input(fmt::format("x{}", t), {DType::kF32, {kRows, kWidth}});
    for (int i = 0; i < kLayers; ++i) {
      const auto scope = g.scope(fmt::format("layer{}", i));
      x = layers[std::size_t(i)].step(g, x);
    }
    const Value term = ops::sum(g, ops::square(g, x));
    loss = loss.valid() ? ops::add(g, loss, term) : term;
  }
  g.mark_output("loss", loss);
  return loss;
}

void add_updates(Graph& g, Value loss) {
  const std::vector<Value> parameters = g.leaves(NodeKind::kParameter);
  const std::vector<Value> gradients = gradient(g, loss, parameters);
  const Value lr = g.input("lr", {DType::kF32, {}}), step = g.input("step", {DType::kI32, {}});
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Value p = parameters[i];
    const std::string name = g.node(p).name;
    const Value m = g.state(name + ".m", g.type(p), nullptr);
    const Value v = g.state(name + ".v", g.type(p), nullptr);
    const Value next = ops::adam_step(g, {p, gradients[i], lr, {}, step, m, v}, {});
    g.mark_update(p, next);
    g.mark_update(m, next.at(AdamOutput::kM));
    g.mark_update(v, next.at(AdamOutput::kV));
  }
}

int steps_for(int nodes) {
  const int one = recurrent_step(1).size(), more = recurrent_step(2).size() - one;
  return std::max(1, 1 + (nodes - one + more / 2) / more);
}

// Seconds of each stage of one compilation.
struct Sample {
  double build, gradient, passes, plan, bind;
};

// Processor time, which on a shared machine depends least on its neighbours; one thread is at work.
double seconds(const std::function<void()>& stage) {
  const std::clock_t start = std::clock();
  stage();
  return double(std::clock() - start) / CLOCKS_PER_SEC;
}

Sample measure(int steps, GraphScale& result) {
  Sample sample{};
  Graph g, optimized;
  Value loss;
  sample.build = seconds([&] { loss = build_forward(g, steps); });
  sample.gradient = seconds([&] { add_updates(g, loss); });
  sample.passes = seconds([&] { optimized = run_passes(g, {.verify_each = false}); });
  sample.plan = seconds([&] { plan_memory(optimized); });
  const auto backend = make_backend("null");
  Variables variables(*backend, 1);
  std::unique_ptr<Program> program;
  const CompileOptions as_it_is{.optimize = false};
  const double rest = seconds(
      [&] { program = std::make_unique<Program>(*backend, variables, optimized, as_it_is); });
  sample.bind = std::max(0.0, rest - sample.plan);  // Program plans as well
  result.nodes = g.size();
  result.kernels = program->kernels();
  return sample;
}

}  // namespace

Graph recurrent_step(int steps) {
  Graph g;
  add_updates(g, build_forward(g, steps));
  return g;
}

GraphScale bench_graph(int nodes, int rounds) {
  const int steps = steps_for(nodes);
  GraphScale result;
  std::vector<Sample> samples;
  for (int i = 0; i < rounds; ++i) samples.push_back(measure(steps, result));
  const auto median = [&](double Sample::*stage) {
    const auto middle = samples.begin() + rounds / 2;
    std::ranges::nth_element(samples, middle, {}, stage);
    return (*middle).*stage;
  };
  result.build = median(&Sample::build);
  result.gradient = median(&Sample::gradient);
  result.passes = median(&Sample::passes);
  result.plan = median(&Sample::plan);
  result.bind = median(&Sample::bind);
  return result;
}

}  // namespace keel::bench
