#include "frontend/train/step_graph.h"

#include <limits>

#include "src/autodiff/gradient.h"
#include "src/ops/elementwise.h"
#include "src/passes/bf16_products.h"

namespace keel::train {
namespace {

task::Inputs added(Graph& graph, const std::vector<task::Input>& inputs) {
  std::vector<NamedValue> values;
  for (const task::Input& input : inputs) {
    values.push_back({input.name, graph.input(input.name, input.type)});
  }
  return task::Inputs(std::move(values));
}

void mark_predictions(Graph& g, const std::vector<NamedValue>& predictions) {
  for (const NamedValue& prediction : predictions) {
    g.mark_output(std::string(kPrediction) + prediction.name, prediction.value);
  }
}

// The forward of a batch that is trained on.
nn::Net add_forward(Graph& g, const Job& job, const task::Sizes& sizes, nn::Mode mode,
                    std::vector<nn::Monitor>* monitors = nullptr) {
  nn::Net net = sampling_net(g, job, mode);
  net.monitors = monitors;
  add_network(net, job.network(), sizes);
  return net;
}

// A gradient is absent where the loss does not depend on the parameter.
struct Training {
  Value step, loss;
  std::vector<Value> parameters;
  std::vector<ParameterGradient> gradients;
};

// Sums of micro-batches are whole gradients. A lazy update takes rows of every table that it can,
// so that what it does never depends on how many ids a batch has.
RowChoice row_choice(const TrainOptions& train) {
  if (train.accumulate > 1) return {.least_rows_per_id = std::numeric_limits<double>::infinity()};
  if (train.embedding_updates == optim::EmbeddingUpdates::kLazy) return {.least_rows_per_id = 0};
  return {};
}

// Forward and backward, with the states that they change.
Training add_training(Graph& g, const Job& job, const task::Sizes& sizes,
                      std::vector<nn::Monitor>* monitors = nullptr) {
  const nn::Net net = add_forward(g, job, sizes, nn::Mode::kTrain, monitors);
  const Value loss = g.outputs().back().value;
  const std::vector<Value> parameters = parameters_of(g);
  const ParameterGradients gradients =
      differentiate_by_rows(g, loss, parameters, row_choice(job.train()));
  net.update(gradients.states);
  return {net.step, loss, parameters, gradients.of};
}

constexpr std::string_view kGathered = ".sum";

Value gathered(Graph& g, const std::string& name, const TensorType& type) {
  return g.state(name + std::string(kGathered), type, nullptr);  // zeros
}

Value gathered(Graph& g, Value parameter) {
  return gathered(g, g.node(parameter).name, g.type(parameter));
}

// The losses of micro-batches before the last, which only a guard asks for.
Value gathered_loss(Graph& g) { return gathered(g, "loss", {DType::kF32, {}}); }

// Makes the update depend on its losses, too: a sum of losses may overflow though no gradient does.
void add_guard(Graph& g, const Job& job, Value loss, optim::Clipped& clipped) {
  if (job.train().accumulate > 1) {
    const Value sum = gathered_loss(g);
    loss = ops::add(g, loss, sum);
    g.mark_update(sum, ops::scale(g, sum, 0));
  }
  const Value nothing = ops::scale(g, loss, 0);  // or NaN
  clipped.scale = ops::add(g, clipped.scale, nothing);
  g.mark_output("guard", ops::add(g, clipped.norm, nothing));
}

}  // namespace

Graph computed(Graph graph, const TrainOptions& train) {
  check(train.compute != Compute::kAuto, ErrorKind::kUsage,
        "train.compute: expected f32 or bf16 where a step is built, got auto, which has to be "
        "settled by a measurement first");
  return train.is_narrow() ? bf16_products(graph) : std::move(graph);
}

std::vector<Value> parameters_of(const Graph& g) {
  std::vector<Value> parameters;
  for (int i = 0; i < g.size(); ++i) {
    const Node& node = g.node(i);
    if (node.kind == NodeKind::kParameter && node.facts.trains) parameters.push_back({i, 0});
  }
  return parameters;
}

task::Outputs add_network(nn::Net& net, const task::Network& network, const task::Sizes& sizes) {
  Graph& g = net.graph;
  const task::Outputs outputs = network.build(net, add_inputs(g, network, sizes));
  const Value weight = g.input("weight", {DType::kF32, {}});
  g.mark_output("loss", ops::mul(g, outputs.loss_sum, weight));
  return outputs;
}

task::Inputs add_inputs(Graph& graph, const task::Network& network, const task::Sizes& sizes) {
  return added(graph, network.inputs(sizes));
}

nn::Net sampling_net(Graph& graph, const Job& job, nn::Mode mode) {
  return {.graph = graph,
          .mode = mode,
          .seed = static_cast<std::uint64_t>(job.train().seed),
          .step = graph.input("step", {DType::kI32, {}}),
          .first_row = graph.input("first_row", {DType::kI32, {}})};
}

Graph build_initialize(const Job& job, const task::Sizes& sizes) {
  Graph g;
  add_forward(g, job, sizes, nn::Mode::kDataDependentInit);
  return g;
}

std::string monitor_output(std::size_t i) { return fmt::format("monitor{}", i); }

Graph build_step(const Job& job, std::vector<nn::Monitor>* monitors) {
  return build_step(job, job.network().sizes(job.train().batch), monitors);
}

Graph build_step(const Job& job, const task::Sizes& sizes, std::vector<nn::Monitor>* monitors) {
  Graph g;
  Training training = add_training(g, job, sizes, monitors);
  if (job.train().accumulate > 1) {
    for (std::size_t i = 0; i < training.parameters.size(); ++i) {
      if (!training.gradients[i].valid()) continue;
      const Value sum = gathered(g, training.parameters[i]);
      training.gradients[i] = ops::add(g, training.gradients[i], sum);
      g.mark_update(sum, ops::scale(g, sum, 0));
    }
  }
  optim::Clipped clipped =
      optim::clip_gradients(g, training.parameters, training.gradients, job.train().clip_options());
  if (job.train().skips()) add_guard(g, job, training.loss, clipped);
  const optim::StepInputs inputs{g.input("lr", {DType::kF32, {}}), clipped.scale, training.step};
  optim::apply_optimizer(g, training.parameters, clipped.gradients, inputs,
                         job.train().optimizer_options());
  g.mark_output("grad_norm", clipped.norm);
  for (std::size_t i = 0; monitors && i < monitors->size(); ++i) {
    g.mark_output(monitor_output(i), (*monitors)[i].value);
  }
  return computed(std::move(g), job.train());
}

Graph build_accumulate(const Job& job, const task::Sizes& sizes) {
  Graph g;
  const Training training = add_training(g, job, sizes);
  for (std::size_t i = 0; i < training.parameters.size(); ++i) {
    if (!training.gradients[i].valid()) continue;
    const Value sum = gathered(g, training.parameters[i]);
    g.mark_update(sum, ops::add(g, sum, training.gradients[i]));
  }
  if (job.train().skips()) {
    const Value sum = gathered_loss(g);
    g.mark_update(sum, ops::add(g, sum, training.loss));
  }
  return computed(std::move(g), job.train());
}

bool is_gathered(std::string_view state) { return state.ends_with(kGathered); }

Graph build_evaluate(const Job& job, const task::Sizes& sizes, nn::Kept kept) {
  Graph g;
  nn::Net net{.graph = g, .mode = nn::Mode::kEvaluate, .kept = kept};
  const task::Outputs outputs = add_network(net, job.network(), sizes);
  for (const task::Metric& metric : outputs.metrics) {
    g.mark_output(sum_output(metric.name), metric.sum);
    if (metric.count.valid()) g.mark_output(count_output(metric.name), metric.count);
  }
  mark_predictions(g, outputs.predictions);
  return g;
}

Graph build_search(const Job& job, std::string_view name, const task::Sizes& sizes) {
  Graph g;
  const task::Network& network = job.network();
  nn::Net net{.graph = g, .mode = nn::Mode::kEvaluate};
  const task::Inputs in = added(g, network.search_inputs(name, sizes));
  mark_predictions(g, network.build_search(net, name, sizes, in));
  return g;
}

Graph build_keep(const Job& job) {
  Graph g;
  const task::Network& network = job.network();
  nn::Net net{.graph = g, .mode = nn::Mode::kEvaluate, .kept = nn::Kept::kWrite};
  network.build(net, add_inputs(g, network, network.sizes(1)));
  return g;
}

std::string sum_output(const std::string& metric) { return "metric/" + metric + "/sum"; }
std::string count_output(const std::string& metric) { return "metric/" + metric + "/count"; }

}  // namespace keel::train
