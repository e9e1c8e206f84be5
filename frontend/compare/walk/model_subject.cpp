#include "frontend/compare/walk/model_subject.h"

#include "frontend/train/step_graph.h"
#include "src/runtime/program.h"

namespace keel::compare {

ModelSubject::ModelSubject(Backend& reference, const train::Job& job,
                           const ModelSubjectOptions& options)
    : name_(job.task().name()),
      job_(job),
      options_(options),
      rows_(job.splits().stream(
          task::Split::kTrain,
          {.batch = job.train().batch, .shuffle = static_cast<std::uint64_t>(job.train().seed)})),
      feeder_(job.network()) {
  initialize(reference);
}

void ModelSubject::initialize(Backend& reference) {
  const task::Batch& batch = batch_of(0);
  const Graph graph = train::build_initialize(job_, batch.sizes);
  if (graph.updates().empty()) return;
  Variables variables(reference, seed());
  Program program(reference, variables, graph);
  feeder_.feed(program, batch, {});
  program.run();
  for (const Update& update : graph.updates()) {
    const std::string& name = graph.node(update.leaf).name;
    first_values_[name] = variables.read(name);
  }
}

const task::Batch& ModelSubject::batch_of(std::int64_t step) {
  std::uint32_t epoch = 0;
  while (step >= rows_->steps(epoch)) step -= rows_->steps(epoch++);
  return rows_->at(epoch, step);
}

const Graph& ModelSubject::graph_of(const task::Sizes& sizes) {
  const auto found = graphs_.find(sizes);
  if (found != graphs_.end()) return found->second;
  const Graph step = train::build_step(job_, sizes);
  return graphs_
      .emplace(sizes, options_.as_run != nullptr ? optimized_for(*options_.as_run, step)
                                                 : compared_graph(step, options_.unfused))
      .first->second;
}

std::int64_t ModelSubject::total_steps() const {
  std::int64_t total = 0;
  for (std::int64_t epoch = 0; epoch < job_.train().epochs; ++epoch) {
    total += rows_->steps(static_cast<std::uint32_t>(epoch));
  }
  const std::int64_t limit = job_.train().max_steps;
  return limit > 0 ? std::min(limit, total) : total;
}

SubjectStep ModelSubject::at(std::int64_t step) {
  const task::Batch& batch = batch_of(step);
  const double rate = job_.train().rate(step, total_steps());
  return {&graph_of(batch.sizes), feeder_.feeds(batch, {.step = step, .rate = rate})};
}

}  // namespace keel::compare
