#include "frontend/train/step_graph.h"

#include "src/autodiff/gradient.h"
#include "src/ops/elementwise.h"

namespace keel::train {
namespace {

task::Outputs add_model(nn::Net& net, const task::Model& model, std::int64_t batch) {
  const task::Outputs outputs = model.build(net, add_inputs(net.graph, model, batch));
  net.graph.mark_output("loss", outputs.loss);
  net.graph.mark_output("errors", outputs.errors);
  return outputs;
}

std::vector<Value> parameters_of(const Graph& g) {
  std::vector<Value> parameters;
  for (int i = 0; i < g.size(); ++i) {
    const Node& node = g.node(i);
    if (node.kind == NodeKind::kParameter && node.facts.trains) parameters.push_back({i, 0});
  }
  return parameters;
}

struct Training {
  std::vector<Value> parameters, gradients;
};

// The forward of a batch that is trained on.
task::Outputs add_forward(Graph& g, const Config& config, nn::Mode mode,
                          std::vector<nn::Watch>* watches = nullptr) {
  nn::Net net{.graph = g,
              .mode = mode,
              .seed = static_cast<std::uint64_t>(config.train().seed),
              .tick = g.input("tick", {DType::kI32, {}}),
              .first_row = g.input("first_row", {DType::kI32, {}}),
              .watches = watches};
  return add_model(net, config.model(), config.train().batch);
}

// Forward and backward of loss / accumulate.
Training add_training(Graph& g, const Config& config, std::vector<nn::Watch>* watches = nullptr) {
  const task::Outputs outputs = add_forward(g, config, nn::Mode::kTrain, watches);
  Value objective = outputs.loss;
  if (config.train().accumulate > 1) {
    objective = ops::scale(g, objective, 1.0 / double(config.train().accumulate));
  }
  Training training{parameters_of(g), {}};
  training.gradients = gradient(g, objective, training.parameters);
  return training;
}

Value gathered(Graph& g, Value parameter) {
  const TensorType type = g.type(parameter);
  return g.state(g.node(parameter).name + ".sum", type, nullptr);  // zeros
}

}  // namespace

std::vector<Value> add_inputs(Graph& graph, const task::Model& model, std::int64_t batch) {
  std::vector<Value> values;
  for (const task::InputSpec& spec : model.inputs()) {
    std::vector<std::int64_t> sizes{batch};
    sizes.insert(sizes.end(), spec.row.sizes().begin(), spec.row.sizes().end());
    values.push_back(graph.input(spec.name, {spec.dtype, Shape(sizes)}));
  }
  return values;
}

Graph build_initialize(const Config& config) {
  Graph g;
  add_forward(g, config, nn::Mode::kInitialize);
  return g;
}

std::string watch_output(std::size_t i) { return fmt::format("watch{}", i); }

Graph build_step(const Config& config, std::vector<nn::Watch>* watches) {
  Graph g;
  Training training = add_training(g, config, watches);
  if (config.train().accumulate > 1) {
    for (std::size_t i = 0; i < training.parameters.size(); ++i) {
      const Value sum = gathered(g, training.parameters[i]);
      training.gradients[i] = ops::add(g, training.gradients[i], sum);
      g.mark_update(sum, ops::scale(g, sum, 0));
    }
  }
  const optim::Clipped clipped =
      optim::clip_gradients(g, training.gradients, config.train().clip_options());
  const optim::StepInputs inputs{g.input("lr", {DType::kF32, {}}), clipped.scale,
                                 g.input("step", {DType::kI32, {}})};
  optim::apply_optimizer(g, training.parameters, clipped.gradients, inputs,
                         config.train().optimizer_options());
  g.mark_output("grad_norm", clipped.norm);
  for (std::size_t i = 0; watches && i < watches->size(); ++i) {
    g.mark_output(watch_output(i), (*watches)[i].value);
  }
  return g;
}

Graph build_accumulate(const Config& config) {
  Graph g;
  const Training training = add_training(g, config);
  for (std::size_t i = 0; i < training.parameters.size(); ++i) {
    const Value sum = gathered(g, training.parameters[i]);
    g.mark_update(sum, ops::add(g, sum, training.gradients[i]));
  }
  return g;
}

Graph build_evaluate(const Config& config, std::int64_t batch) {
  Graph g;
  nn::Net net{.graph = g, .mode = nn::Mode::kEvaluate};
  add_model(net, config.model(), batch);
  return g;
}

}  // namespace keel::train
