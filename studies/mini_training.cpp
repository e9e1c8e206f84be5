#include "studies/mini_training.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "frontend/train/step_graph.h"
#include "src/autodiff/gradient.h"
#include "src/ops/elementwise.h"
#include "src/ops/reduce.h"

namespace keel::study {

train::Config mini_config(std::unique_ptr<task::Model> model, std::string_view recipe,
                          std::uint64_t seed, const task::OptionValues& settings, int steps) {
  train::Config config(std::move(model));
  config.apply_toml(recipe, std::string(config.model().name()));
  for (const char* key : {"train.seed", "data.seed"}) config.set(key, std::to_string(seed));
  for (const auto& [key, value] : settings) config.set(key, value);
  if (steps > 0) config.set("train.max_steps", std::to_string(steps));
  config.validate();
  return config;
}

MiniTraining::MiniTraining(Backend& backend, const train::Config& config, RowOrder order)
    : backend_(backend),
      config_(config),
      data_(config.model().load(config.data().request())),
      train_(data_->stream(task::Split::kTrain, {.batch = config.train().batch, .shuffle = {}})),
      order_(order),
      variables_(backend, std::uint64_t(config.train().seed)),
      feeder_(config.model()),
      evaluator_(backend, variables_, config) {
  initialize();
}

void MiniTraining::initialize() {
  const Graph graph = train::build_initialize(config_, {config_.train().batch});
  variables_.declare(graph);
  if (graph.updates().empty()) return;
  Program program(backend_, variables_, graph);
  for (const char* key : {"tick", "first_row"}) {
    program.feed(key, Tensor::of<std::int32_t>({}, {0}));
  }
  feed_rows(program, rows(0));
  program.run();
}

std::vector<std::int64_t> MiniTraining::rows(std::int64_t step) const {
  std::vector<std::int64_t> rows(std::size_t(config_.train().batch));
  if (order_ == RowOrder::kStream) {
    std::iota(rows.begin(), rows.end(), step * config_.train().batch);
    return rows;
  }
  const Philox random(std::uint64_t(config_.train().seed), stream_of("rows"), std::uint32_t(step));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i] = random.below(i, std::uint32_t(train_->rows()));
  }
  return rows;
}

void MiniTraining::feed_rows(Program& program, const std::vector<std::int64_t>& rows) {
  const task::Batch& batch = train_->pick(rows);
  feeder_.feed(program, batch);
  program.feed("weight", Tensor::scalar(float(1 / batch.items)));
}

Value MiniTraining::add_probe(Graph& graph) const {
  nn::Net net{.graph = graph, .mode = nn::Mode::kProbe};
  const task::Model& model = config_.model();
  const task::Inputs inputs = train::add_inputs(graph, model, {config_.train().batch});
  const Value sum = model.build(net, inputs).loss_sum;
  return ops::mul(graph, sum, graph.input("weight", {DType::kF32, {}}));
}

double MiniTraining::gradient_norm(const std::string& output) {
  Graph g;
  const Value loss = add_probe(g);
  const auto v = std::ranges::find(g.outputs(), output, &NamedValue::name);
  check(v != g.outputs().end(), ErrorKind::kUsage, "[{}] no output is called '{}'",
        config_.model().name(), output);
  const std::vector<Value> dv = gradient(g, loss, {{v->value}});
  g.mark_output("norm", ops::sqrt(g, ops::sum(g, ops::square(g, dv[0]))));
  Program program(backend_, variables_, g);
  feed_rows(program, rows(0));
  program.run();
  return program.scalar("norm");
}

void MiniTraining::run(const Observer& observer) {
  Graph graph = train::build_step(config_);
  observer.mark(graph);
  Program program(backend_, variables_, graph, {.guard = "grad_norm"});
  for (std::int64_t step = 0; step < config_.train().max_steps; ++step) {
    feed(program, step);
    program.run();
    record(program, step);
    observer.look(program);
  }
}

void MiniTraining::feed(Program& program, std::int64_t step) {
  const train::TrainOptions& options = config_.train();
  const double factor = optim::schedule_factor(options.schedule_options(), step, options.max_steps);
  program.feed("lr", Tensor::scalar(float(options.lr * factor)));
  for (const char* counter : {"step", "tick"}) {
    program.feed(counter, Tensor::of<std::int32_t>({}, {std::int32_t(step)}));
  }
  feed_rows(program, rows(step));
}

void MiniTraining::record(const Program& program, std::int64_t step) {
  const double loss = program.scalar("loss"), norm = program.scalar("grad_norm");
  check(std::isfinite(loss) && std::isfinite(norm), ErrorKind::kDiverged,
        "[{}] step {}: loss {}, gradient norm {}", config_.model().name(), step, loss, norm);
  for (const auto& [name, value] : program.graph().outputs()) {
    if (program.graph().shape(value).rank() == 0) traces_[name].push_back(program.scalar(name));
  }
}

void MiniTraining::pass(const Observer& observer) {
  Graph graph;
  add_probe(graph);
  observer.mark(graph);
  Program program(backend_, variables_, graph);
  std::vector<std::int64_t> batch(std::size_t(config_.train().batch));
  const std::int64_t batches = train_->rows() / config_.train().batch;
  for (std::int64_t i = 0; i < batches; ++i) {
    std::iota(batch.begin(), batch.end(), i * config_.train().batch);
    feed_rows(program, batch);
    program.run();
    observer.look(program);
  }
}

train::Evaluation MiniTraining::evaluate(task::Split split) {
  const auto rows = data_->stream(split, train::evaluation_options(config_));
  const train::Evaluation result = evaluator_.run(*rows);
  check(std::isfinite(result.loss), ErrorKind::kDiverged, "[{}] evaluation: loss {}",
        config_.model().name(), result.loss);
  return result;
}

}  // namespace keel::study
