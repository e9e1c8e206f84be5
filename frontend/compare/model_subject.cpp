#include "frontend/compare/model_subject.h"

#include "frontend/train/step_graph.h"
#include "src/runtime/program.h"

namespace keel::compare {

ModelSubject::ModelSubject(Backend& judge, const train::Job& job,
                           const ModelSubjectOptions& options)
    : name_(job.task().name()),
      job_(job),
      options_(options),
      rows_(job.splits().stream(
          task::Split::kTrain,
          {.batch = job.train().batch, .shuffle = static_cast<std::uint64_t>(job.train().seed)})) {
  initialize(judge);
}

void ModelSubject::initialize(Backend& judge) {
  const task::Batch& batch = batch_of(0);
  const Graph graph = train::build_initialize(job_, batch.sizes);
  if (graph.updates().empty()) return;
  Variables variables(judge, seed());
  Program program(judge, variables, graph);
  const Feeds feeds = feeds_of(0, batch);
  for (Value input : program.graph().leaves(NodeKind::kInput)) {
    const std::string& name = program.graph().node(input).name;
    program.feed(name, feeds.at(name));
  }
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

Feeds ModelSubject::feeds_of(std::int64_t step, const task::Batch& batch) const {
  const train::TrainOptions& options = job_.train();
  const double factor = optim::schedule_factor(options.schedule_options(), step, total_steps());
  const auto count = [](std::int64_t n) { return Tensor::of<std::int32_t>({}, {std::int32_t(n)}); };
  Feeds feeds;
  feeds["tick"] = count(step);
  feeds["step"] = count(step);
  feeds["first_row"] = count(0);
  feeds["weight"] = Tensor::scalar(float(1 / batch.items));
  feeds["lr"] = Tensor::scalar(float(options.lr * factor));
  const std::vector<task::Input> inputs = job_.network().inputs(batch.sizes);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    feeds[inputs[i].name] = batch.values[i].clone();
  }
  return feeds;
}

SubjectStep ModelSubject::at(std::int64_t step) {
  const task::Batch& batch = batch_of(step);
  return {&graph_of(batch.sizes), feeds_of(step, batch)};
}

}  // namespace keel::compare
