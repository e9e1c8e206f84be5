#include "frontend/study/mini_training.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "frontend/train/step_graph.h"
#include "src/autodiff/gradient.h"
#include "src/ops/elementwise.h"
#include "src/ops/reduce.h"

namespace keel::study {

train::Config mini_config(std::unique_ptr<task::Model> model, std::string_view recipe,
                          std::uint64_t seed, const task::OptionValues& settings) {
  train::Config config(std::move(model));
  config.apply_toml(recipe, std::string(config.model().name()));
  for (const char* key : {"train.seed", "data.seed"}) config.set(key, std::to_string(seed));
  for (const auto& [key, value] : settings) config.set(key, value);
  config.validate();
  return config;
}

MiniTraining::MiniTraining(Backend& backend, const train::Config& config, RowOrder order)
    : backend_(backend),
      config_(config),
      data_(config.model().load(config.data().request())),
      order_(order),
      variables_(backend, std::uint64_t(config.train().seed)),
      feeder_(config.model().inputs(), data_.train, config.train().batch),
      evaluator_(backend, variables_, config) {}

std::vector<std::int64_t> MiniTraining::rows(std::int64_t step) const {
  std::vector<std::int64_t> rows(std::size_t(config_.train().batch));
  if (order_ == RowOrder::kStream) {
    std::iota(rows.begin(), rows.end(), step * config_.train().batch);
    return rows;
  }
  const Philox random(std::uint64_t(config_.train().seed), stream_of("rows"), std::uint32_t(step));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i] = random.below(i, std::uint32_t(data_.train.rows()));
  }
  return rows;
}

double MiniTraining::gradient_norm(const std::string& output) {
  Graph g;
  nn::Net net{.graph = g, .mode = nn::Mode::kProbe};
  const std::vector<Value> inputs = train::add_inputs(g, config_.model(), config_.train().batch);
  const Value loss = config_.model().build(net, inputs).loss;
  const auto v = std::ranges::find(g.outputs(), output, &NamedValue::name);
  check(v != g.outputs().end(), ErrorKind::kUsage, "[{}] no output is called '{}'",
        config_.model().name(), output);
  const std::vector<Value> dv = gradient(g, loss, {{v->value}});
  g.mark_output("norm", ops::sqrt(g, ops::sum(g, ops::square(g, dv[0]))));
  Program program(backend_, variables_, g);
  feeder_.feed(program, rows(0));
  program.run();
  return program.scalar("norm");
}

void MiniTraining::run() {
  const train::TrainOptions& options = config_.train();
  Program program(backend_, variables_, train::build_step(config_), {.guard = "grad_norm"});
  for (std::int64_t step = 0; step < options.max_steps; ++step) {
    const double factor =
        optim::schedule_factor(options.schedule_options(), step, options.max_steps);
    program.feed("lr", Tensor::scalar(float(options.lr * factor)));
    for (const char* counter : {"step", "tick"}) {
      program.feed(counter, Tensor::of<std::int32_t>({}, {std::int32_t(step)}));
    }
    feeder_.feed(program, rows(step));
    program.run();
    const double loss = program.scalar("loss"), norm = program.scalar("grad_norm");
    check(std::isfinite(loss) && std::isfinite(norm), ErrorKind::kDiverged,
          "[{}] step {}: loss {}, gradient norm {}", config_.model().name(), step, loss, norm);
    for (const NamedValue& output : program.graph().outputs()) {
      traces_[output.name].push_back(program.scalar(output.name));
    }
  }
}

train::Evaluation MiniTraining::evaluate(const data::Dataset& dataset) {
  const train::Evaluation result = evaluator_.run(dataset);
  check(std::isfinite(result.loss), ErrorKind::kDiverged, "[{}] evaluation: loss {}",
        config_.model().name(), result.loss);
  return result;
}

}  // namespace keel::study
