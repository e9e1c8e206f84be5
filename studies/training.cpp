#include "studies/training.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "frontend/train/run_state.h"
#include "frontend/train/step_graph.h"
#include "src/autodiff/gradient.h"
#include "src/ops/elementwise.h"
#include "src/ops/reduce.h"

namespace keel::study {
namespace {

task::StreamOptions stream_options(const train::TrainOptions& options, RowOrder order) {
  task::StreamOptions stream{.batch = options.batch};
  if (order == RowOrder::kEpochs) stream.shuffle = std::uint64_t(options.seed);
  return stream;
}

}  // namespace

Training::Training(Backend& backend, const train::Job& job, RowOrder order)
    : backend_(backend),
      job_(job),
      order_(order),
      train_(job.splits().stream(task::Split::kTrain, stream_options(job.train(), order))),
      variables_(backend, std::uint64_t(job.train().seed)),
      feeder_(job.network()),
      evaluator_(backend, variables_, job) {
  check(order == RowOrder::kEpochs || job.train().accumulate == 1, ErrorKind::kUsage,
        "train.accumulate: expected 1 where rows do not come in epochs, got {}",
        job.train().accumulate);
  initialize();
}

void Training::initialize() {
  const task::Batch& batch = batch_of(0);
  const Graph graph = train::build_initialize(job_, batch.sizes);
  variables_.declare(graph);
  if (graph.updates().empty()) return;
  Program program(backend_, variables_, graph);
  feeder_.feed(program, batch, {});
  program.run();
}

void Training::load(const io::TensorFile& file, const std::string& path) {
  train::load_finite(file, path, variables_);
}

std::vector<std::int64_t> Training::rows_of(std::int64_t step) const {
  const std::int64_t batch = job_.train().batch;
  std::vector<std::int64_t> rows(static_cast<std::size_t>(batch));
  if (order_ == RowOrder::kStream) {
    std::iota(rows.begin(), rows.end(), step * batch);
    return rows;
  }
  const Philox random(std::uint64_t(job_.train().seed), stream_of("rows"), std::uint32_t(step));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i] = random.below(i, std::uint32_t(train_->rows()));
  }
  return rows;
}

std::int64_t Training::updates() const {
  const std::int64_t accumulate = job_.train().accumulate;
  return (train_->steps(epoch_) + accumulate - 1) / accumulate;
}

void Training::go_to(std::int64_t step) {
  if (step == 0) epoch_ = 0, epoch_begin_ = 0;
  if (step == epoch_begin_ + updates()) ++epoch_, epoch_begin_ = step;
}

Training::UpdateSize Training::size_of(std::int64_t step) {
  if (order_ != RowOrder::kEpochs) return {};
  go_to(step);
  const std::int64_t accumulate = job_.train().accumulate,
                     first = (step - epoch_begin_) * accumulate;
  UpdateSize size{.batches = std::min(accumulate, train_->steps(epoch_) - first)};
  for (std::int64_t i = 0; i < size.batches; ++i) {
    size.items += train_->items(epoch_, first + i);
  }
  return size;
}

const task::Batch& Training::batch_of(std::int64_t step, std::int64_t i) {
  if (order_ != RowOrder::kEpochs) return train_->pick(rows_of(step));
  go_to(step);
  return train_->at(epoch_, (step - epoch_begin_) * job_.train().accumulate + i);
}

double Training::rate(std::int64_t step) const {
  return job_.train().rate(step, job_.train().max_steps);
}

double Training::gather(ProgramCache& programs, const UpdateSize& size,
                        const StepObserver& observer, train::StepPoint& point) {
  double loss = 0;
  for (std::int64_t i = 0; i < size.batches - 1; ++i) {
    const task::Batch& batch = batch_of(point.step, i);
    Program& program = programs.at(batch.sizes);
    feeder_.feed(program, batch, point);
    program.run();
    observer.gather(program);
    loss += program.scalar("loss");
    point.first_row += batch.sizes[0];
  }
  return loss;
}

void Training::run(const StepObserver& observer) {
  Arena arena(backend_);
  const auto marked = [&observer](Graph graph) {
    observer.mark(graph);
    return graph;
  };
  ProgramCache steps(
      backend_, variables_,
      [&](const task::Sizes& sizes) { return marked(train::build_step(job_, sizes)); },
      {.guard = "grad_norm", .arena = &arena});
  ProgramCache gathers(
      backend_, variables_,
      [&](const task::Sizes& sizes) { return marked(train::build_accumulate(job_, sizes)); },
      {.arena = &arena});
  for (std::int64_t step = 0; step < job_.train().max_steps; ++step) {
    const UpdateSize size = size_of(step);
    train::StepPoint point{.step = step, .items = size.items, .rate = rate(step)};
    const double gathered_loss = gather(gathers, size, observer, point);
    const task::Batch& batch = batch_of(step, size.batches - 1);
    Program& program = steps.at(batch.sizes);
    observer.expect(step, batch);
    feeder_.feed(program, batch, point);
    program.run();
    record(program, step, gathered_loss + program.scalar("loss"));
    const double part = double(step - epoch_begin_ + 1) / double(updates());
    observer.look({program, batch, step, double(epoch_) + part, traces_.at("loss").back()});
  }
}

void Training::record(const Program& program, std::int64_t step, double loss) {
  for (const auto& [name, value] : program.graph().outputs()) {
    if (program.graph().shape(value).rank() == 0) traces_[name].push_back(program.scalar(name));
  }
  traces_.at("loss").back() = loss;
  const double norm = traces_.at("grad_norm").back();
  check(std::isfinite(loss) && std::isfinite(norm), ErrorKind::kDiverged,
        "[{}] step {}: loss {}, gradient norm {}", job_.task().name(), step, loss, norm);
}

Value Training::add_probe(Graph& graph, const task::Sizes& sizes) const {
  nn::Net net = train::drawing_net(graph, job_, nn::Mode::kProbe);
  return job_.network().build(net, train::add_inputs(graph, job_.network(), sizes)).loss_sum;
}

double Training::gradient_norm(const std::string& output) {
  const task::Batch& batch = batch_of(0);
  Graph g;
  const Value sum = add_probe(g, batch.sizes);
  const Value loss = ops::mul(g, sum, g.input("weight", {DType::kF32, {}}));
  const auto v = std::ranges::find(g.outputs(), output, &NamedValue::name);
  check(v != g.outputs().end(), ErrorKind::kUsage, "[{}] no output is called '{}'",
        job_.task().name(), output);
  const std::vector<Value> dv = gradient(g, loss, {{v->value}});
  g.mark_output("norm", ops::sqrt(g, ops::sum(g, ops::square(g, dv[0]))));
  Program program(backend_, variables_, g);
  feeder_.feed(program, batch, {});
  program.run();
  return program.scalar("norm");
}

void Training::pass(const PassObserver& observer) {
  Arena arena(backend_);
  const auto build = [&](const task::Sizes& sizes) {
    Graph g;
    g.mark_output("loss", add_probe(g, sizes));
    observer.mark(g);
    return g;
  };
  ProgramCache programs(backend_, variables_, build, {.arena = &arena});
  const bool in_epochs = order_ == RowOrder::kEpochs;
  const std::int64_t whole = train_->rows() / job_.train().batch;
  for (std::int64_t step = 0; step < (in_epochs ? train_->steps(0) : whole); ++step) {
    const task::Batch& batch = train_->at(0, step);
    Program& program = programs.at(batch.sizes);
    feeder_.feed(program, batch, {.step = step});
    program.run();
    observer.look(program);
  }
}

train::Evaluation Training::evaluate(task::Split split) {
  const auto rows = job_.splits().stream(split, train::evaluation_options(job_));
  const train::Evaluation result = evaluator_.run(*rows);
  check(std::isfinite(result.loss), ErrorKind::kDiverged, "[{}] evaluation: loss {}",
        job_.task().name(), result.loss);
  return result;
}

}  // namespace keel::study
