#include "frontend/train/update_probe.h"

#include <algorithm>
#include <utility>

#include "frontend/train/step_graph.h"
#include "src/autodiff/gradient.h"

namespace keel::train {
namespace {

std::unique_ptr<task::Stream> first_shard_of(const Job& job) {
  const TrainOptions& train = job.train();
  if (train.shards == 1 || train.statistics == ShardStatistics::kSynchronised) return nullptr;
  return job.splits().stream(task::Split::kTrain,
                             {.batch = train.batch,
                              .shuffle = static_cast<std::uint64_t>(train.seed),
                              .shard_range = {train.shards, 0, 1, train.accumulate}});
}

}  // namespace

Graph build_probe(const Job& job, const task::Sizes& sizes, const UpdateProbe::Outputs& outputs) {
  Graph g;
  nn::Net net = sampling_net(g, job, nn::Mode::kTrain);  // with dropout
  add_network(net, job.network(), sizes);
  const std::vector<Value> parameters = parameters_of(g);
  const std::vector<Value> gradients = gradient(g, g.outputs().back().value, parameters);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::string& name = g.node(parameters[i]).name;
    if (std::ranges::count(outputs.gradients, name) == 0) continue;
    g.mark_output("gradient/" + name, gradients[i]);
  }
  outputs.mark(g);
  g.take_updates();
  return g;
}

UpdateProbe::UpdateProbe(const ObservedUpdate& update, Outputs outputs)
    : job_(update.job),
      outputs_(std::move(outputs)),
      feeder_(update.job.network()),
      first_shard_(first_shard_of(update.job)),
      programs_(update.backend, update.variables,
                [this](const task::Sizes& sizes) {
                  return computed(build_probe(job_, sizes, outputs_), job_.train());
                },
                {.arena = outputs_.stay ? nullptr : &update.arena, .carries = &update.carries}) {}

const Program* UpdateProbe::run(const ObservedUpdate& update) {
  const StepPlace& place = update.place;
  const double items = update.items();  // asked first, for a batch is valid until the next call
  task::Stream& rows = first_shard_ ? *first_shard_ : update.rows;
  const task::Batch& batch = rows.at(static_cast<std::uint32_t>(place.epoch), place.batch);
  if (batch.rows.empty()) return nullptr;
  Program& program = programs_.at(batch.sizes);
  feeder_.feed(program, batch, {.step = place.step, .first_row = batch.first_row, .items = items});
  program.run();
  return &program;
}

}  // namespace keel::train
