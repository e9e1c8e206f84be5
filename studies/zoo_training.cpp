#include "studies/zoo_training.h"

#include <cmath>

#include "frontend/train/step_graph.h"
#include "models/registry.h"

namespace keel::study {

std::string task_of(const Options& options, const std::string& task) {
  return options.task.empty() ? task : options.task;
}

std::vector<std::string> norms_of(const Options& options, const std::vector<std::string>& norms) {
  return options.norms.empty() ? norms : options.norms;
}

train::Config zoo_config(const Options& options, int i, const ZooRun& run) {
  const models::ModelEntry& entry = models::find_model(run.task);
  train::Config config(entry.make());
  config.apply_toml(models::find_recipe(entry, "laptop"), "laptop");
  const std::string seed = std::to_string(options.seed + std::uint64_t(i));
  for (const char* key : {"train.seed", "data.seed"}) config.set(key, seed);
  if (!options.data.empty()) config.set("data.source", options.data);
  for (const auto& [key, value] : run.settings) config.set(key, value);
  config.set("model.norm", run.norm);
  config.set("train.max_steps", std::to_string(options.steps > 0 ? options.steps : run.steps));
  for (const auto& [key, value] : options.settings) config.set(key, value);
  config.validate();
  check(config.train().accumulate == 1, ErrorKind::kUsage,
        "train.accumulate: expected 1 in a study, got {}", config.train().accumulate);
  config.prepare();
  return config;
}

ZooTraining::ZooTraining(Backend& backend, const train::Config& config)
    : backend_(backend),
      config_(config),
      data_(config.model().load(config.data().request())),
      train_(data_->stream(task::Split::kTrain, {.batch = config.train().batch,
                                                 .shuffle = std::uint64_t(config.train().seed)})),
      variables_(backend, std::uint64_t(config.train().seed)),
      feeder_(config.model()),
      evaluator_(backend, variables_, config) {
  initialize();
}

void ZooTraining::initialize() {
  const task::Batch& batch = train_->at(0, 0);
  const Graph graph = train::build_initialize(config_, batch.sizes);
  variables_.declare(graph);
  if (graph.updates().empty()) return;
  Program program(backend_, variables_, graph);
  feeder_.feed(program, batch);
  program.feed("weight", Tensor::scalar(float(1 / batch.items)));
  for (const char* key : {"tick", "first_row"}) {
    program.feed(key, Tensor::of<std::int32_t>({}, {0}));
  }
  program.run();
}

void ZooTraining::feed(Program& program, const task::Batch& batch, std::int64_t step) const {
  const train::TrainOptions& options = config_.train();
  const double factor = optim::schedule_factor(options.schedule_options(), step, options.max_steps);
  feeder_.feed(program, batch);
  program.feed("weight", Tensor::scalar(float(1 / batch.items)));
  program.feed("lr", Tensor::scalar(float(options.lr * factor)));
  for (const char* counter : {"step", "tick"}) {
    program.feed(counter, Tensor::of<std::int32_t>({}, {std::int32_t(step)}));
  }
  program.feed("first_row", Tensor::of<std::int32_t>({}, {0}));
}

void ZooTraining::run(const ZooObserver& observer) {
  Arena arena(backend_);
  const auto build = [&](const task::Sizes& sizes) {
    Graph graph = train::build_step(config_, sizes);
    observer.mark(graph);
    return graph;
  };
  ProgramCache programs(backend_, variables_, build, {.guard = "grad_norm", .arena = &arena});
  std::uint32_t epoch = 0;
  std::int64_t place = 0;
  for (std::int64_t step = 0; step < config_.train().max_steps; ++step, ++place) {
    if (place == train_->steps(epoch)) ++epoch, place = 0;
    const task::Batch& batch = train_->at(epoch, place);
    Program& program = programs.at(batch.sizes);
    observer.expect(step, batch);
    feed(program, batch, step);
    program.run();
    const double loss = program.scalar("loss"), norm = program.scalar("grad_norm");
    check(std::isfinite(loss) && std::isfinite(norm), ErrorKind::kDiverged,
          "[{}] step {}: loss {}, gradient norm {}", config_.model().name(), step, loss, norm);
    observer.look({program, batch, step,
                   double(epoch) + double(place + 1) / double(train_->steps(epoch)), loss});
  }
}

void ZooTraining::pass(const ZooPass& seen) {
  Arena arena(backend_);
  const auto build = [&](const task::Sizes& sizes) {
    Graph g;
    nn::Net net{.graph = g,
                .mode = nn::Mode::kProbe,
                .seed = std::uint64_t(config_.train().seed),
                .tick = g.input("tick", {DType::kI32, {}}),
                .first_row = g.input("first_row", {DType::kI32, {}})};
    const task::Inputs in = train::add_inputs(g, config_.model(), sizes);
    g.mark_output("loss", config_.model().build(net, in).loss_sum);
    seen.mark(g);
    return g;
  };
  ProgramCache programs(backend_, variables_, build, {.arena = &arena});
  for (std::int64_t step = 0; step < train_->steps(0); ++step) {
    const task::Batch& batch = train_->at(0, step);
    Program& program = programs.at(batch.sizes);
    feeder_.feed(program, batch);
    program.feed("tick", Tensor::of<std::int32_t>({}, {std::int32_t(step)}));
    program.feed("first_row", Tensor::of<std::int32_t>({}, {0}));
    program.run();
    seen.look(program);
  }
}

train::Evaluation ZooTraining::evaluate(task::Split split) {
  const auto rows = data_->stream(split, train::evaluation_options(config_));
  const train::Evaluation result = evaluator_.run(*rows);
  check(std::isfinite(result.loss), ErrorKind::kDiverged, "[{}] evaluation: loss {}",
        config_.model().name(), result.loss);
  return result;
}

}  // namespace keel::study
