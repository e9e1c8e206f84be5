#include "studies/memory_training.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <nlohmann/json.hpp>

#include "frontend/train/run_state.h"
#include "frontend/train/step_graph.h"
#include "src/autodiff/gradient.h"
#include "src/ops/elementwise.h"
#include "src/ops/reduce.h"

namespace keel::study {
namespace {

train::RunOptions in_memory(train::Observer& observer) {
  return {.folder = {}, .quiet = true, .observers = {&observer}};
}

void run_to_end(train::Trainer& trainer) {
  const int signal = trainer.run().signal;
  if (signal != 0) std::raise(signal);
}

// The network of a probe for a batch of these sizes; gives the summed loss.
Value add_pass(Graph& graph, const train::Job& job, const task::Sizes& sizes) {
  nn::Net net = train::sampling_net(graph, job, nn::Mode::kProbe);
  return job.network().build(net, train::add_inputs(graph, job.network(), sizes)).loss_sum;
}

std::unique_ptr<task::Stream> training_rows(const train::Job& job) {
  return job.splits().stream(task::Split::kTrain, {.batch = job.train().batch,
                                                   .shuffle = std::uint64_t(job.train().seed)});
}

}  // namespace

const task::OptionValues& memory_settings() {
  static const task::OptionValues settings{
      {"train.eval_every", "2000000000u"}, {"train.test_every", "0"},   {"train.patience", "0"},
      {"train.stop_min_lr", "0"},          {"train.average_last", "0"}, {"train.observe", ""},
      {"train.on_nonfinite", "stop"}};
  return settings;
}

std::vector<ObservedLine> train_lines(Backend& backend, const train::Job& job,
                                      train::Observer& observer) {
  std::vector<ObservedLine> lines;
  observer.write_to([&](std::int64_t step, const nlohmann::ordered_json& values) {
    lines.push_back({step, values});
  });
  train::Trainer trainer(backend, job, in_memory(observer));
  run_to_end(trainer);
  return lines;
}

Training::Training(Backend& backend, const train::Job& job)
    : job_(job),
      trainer_(backend, job, in_memory(eye_)),
      evaluator_(backend, trainer_.variables(), job) {}

void Training::run(const StepObserver& observer) {
  eye_.observer = &observer;
  run_to_end(trainer_);
}

void Training::Eye::before(const train::ObservedUpdate& update) {
  if (observer->mark) {
    if (!probe) {
      probe = std::make_unique<train::UpdateProbe>(
          update, train::UpdateProbe::Outputs{observer->mark, observer->gradients, true});
    }
    program = probe->run(update);
  }
  observer->expect(update);
}

void Training::Eye::after(const train::ObservedUpdate& update, const train::StepResult& result) {
  if (program != nullptr) {
    const Graph& graph = program->graph();
    for (const auto& [name, value] : graph.outputs()) {
      if (graph.shape(value).rank() == 0) traces[name].push_back(program->scalar(name));
    }
    traces["loss"].pop_back();  // that of the whole update stands for it
  }
  traces["loss"].push_back(result.loss);
  traces["grad_norm"].push_back(result.grad_norm);
  const double items =
      update.rows.items(static_cast<std::uint32_t>(update.place.epoch), update.place.batch);
  observer->look({program, update.place.step, update.epoch(), result.loss, items / update.items()});
}

void pass_over(Backend& backend, Variables& variables, const train::Job& job,
               const PassObserver& observer) {
  Arena arena(backend);
  const auto build = [&](const task::Sizes& sizes) {
    Graph g;
    g.mark_output("loss", add_pass(g, job, sizes));
    observer.mark(g);
    return g;
  };
  ProgramCache programs(backend, variables, build, {.arena = &arena});
  train::Feeder feeder(job.network());
  const auto rows = training_rows(job);
  for (std::int64_t step = 0; step < rows->steps(0); ++step) {
    const task::Batch& batch = rows->at(0, step);
    Program& program = programs.at(batch.sizes);
    feeder.feed(program, batch, {.step = step});
    program.run();
    observer.look(program);
  }
}

double gradient_norm(Backend& backend, Variables& variables, const train::Job& job,
                     const std::string& output) {
  const auto rows = training_rows(job);
  const task::Batch& batch = rows->at(0, 0);
  Graph g;
  const Value sum = add_pass(g, job, batch.sizes);
  const Value loss = ops::mul(g, sum, g.input("weight", {DType::kF32, {}}));
  const auto v = std::ranges::find(g.outputs(), output, &NamedValue::name);
  check(v != g.outputs().end(), ErrorKind::kUsage, "[{}] no output is called '{}'",
        job.task().name(), output);
  const std::vector<Value> dv = gradient(g, loss, {{v->value}});
  g.mark_output("norm", ops::sqrt(g, ops::sum(g, ops::square(g, dv[0]))));
  Program program(backend, variables, g);
  train::Feeder(job.network()).feed(program, batch, {});
  program.run();
  return program.scalar("norm");
}

train::Evaluation evaluation_of(train::Evaluator& evaluator, const train::Job& job,
                                task::Split split) {
  const auto rows = job.splits().stream(split, train::evaluation_options(job));
  const train::Evaluation result = evaluator.run(*rows);
  check(std::isfinite(result.loss), ErrorKind::kDiverged, "[{}] evaluation: loss {}",
        job.task().name(), result.loss);
  return result;
}

void load_network(const io::TensorFile& file, const std::string& path, Variables& variables,
                  const train::Job& job) {
  variables.declare(train::build_initialize(job, job.network().sizes(job.train().batch)));
  train::load_finite(file, path, variables);
}

}  // namespace keel::study
