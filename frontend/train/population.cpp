#include "frontend/train/population.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "frontend/train/feeder.h"
#include "frontend/train/shard_graph.h"
#include "frontend/train/step_graph.h"
#include "src/runtime/program_cache.h"

namespace keel::train {
namespace {

// Averages begin the pass with this value. It vanishes beside every statistic, and yet a batch
// whose statistics are 0 changes it, whereas a batch without a row does not.
constexpr double kMarker = 0x1p-100;

// One statistic of one application of a norm: next = keep * running + (1 - keep) * batch.
struct Statistic {
  Value running, next;
  double keep = 0;
  std::string leaf = {};  // under which it persists
};
using Application = std::vector<Statistic>;  // of one node, none if it has no such statistics

Application application_of(const Graph& g, int i) {
  constexpr std::string_view kNext = "next_";
  const Node& node = g.node(i);
  const std::optional<double> keep = kept_by_batch(node);
  Application application;
  for (int j = 0; keep && j < int(node.outputs.size()); ++j) {
    const std::string_view output = node.op->output_names[std::size_t(j)];
    if (!output.starts_with(kNext)) continue;
    const int state = input_place(*node.op, output.substr(kNext.size()));
    application.push_back({node.inputs[std::size_t(state)], {i, j}, *keep});
  }
  return application;
}

std::string output_of(Value v) { return fmt::format("population/{}/{}", v.node, v.port); }

// The applications that move an average in training. An application beyond the last time step with
// statistics of its own is not one of them: it reads the average as the one before it would leave
// it, and moves nothing.
std::vector<Application> applications_of(const Graph& g) {
  std::vector<Application> applications;
  for (int i = 0; i < g.size(); ++i) {
    Application application = application_of(g, i);
    const auto is_state = [&](const Statistic& s) {
      return g.node(s.running).kind == NodeKind::kState;
    };
    if (application.empty() || !std::ranges::all_of(application, is_state)) continue;
    for (Statistic& s : application) s.leaf = g.node(s.running).name;
    applications.push_back(std::move(application));
  }
  return applications;
}

void refuse_running_norms(const Graph& g) {
  for (int i = 0; i < g.size(); ++i) {
    const Node& node = g.node(i);
    const bool is_running =
        node.kind == NodeKind::kOp && node.op->norm && node.op->norm->by_running_statistics;
    check(
        !is_running, ErrorKind::kUsage,
        "population statistics: expected norms that train only on batch statistics, got {}, which "
        "normalizes by running statistics in training, too",
        node.name);
  }
}

// The sum of a statistic over the batches that had a row.
struct PopulationSum {
  std::vector<double> trained;  // the running average of the checkpoint
  std::vector<double> sum;
  std::int64_t batches = 0;

  void add(const std::vector<double>& of_batch) {
    for (std::size_t c = 0; c < sum.size(); ++c) sum[c] += of_batch[c];
    ++batches;
  }
  std::vector<double> mean() const {
    if (batches == 0) return trained;
    std::vector<double> mean = sum;
    for (double& value : mean) value /= double(batches);
    return mean;
  }
};

class PopulationPass {
 public:
  PopulationPass(Backend& backend, Variables& variables, const Job& job)
      : variables_(variables),
        job_(job),
        arena_(backend),
        feeder_(job.network()),
        programs_(backend, variables, [this](const task::Sizes& sizes) { return build(sizes); },
                  {.arena = &arena_}) {}

  void run(const TellPass& tell) {
    const auto rows = batches();
    const std::int64_t steps = rows->steps(0);
    for (std::int64_t step = 0; step < steps; ++step) {
      const task::Batch& batch = rows->at(0, step);
      Program& program = programs_.at(batch.sizes);
      feeder_.feed(program, batch, {.step = step});
      program.run();
      for (const Application& a : applications_.at(batch.sizes)) take(program, a);
      if (tell) tell(step + 1, steps);
    }
    for (const auto& [leaf, sum] : sums_) write(leaf, sum.mean());
  }

 private:
  // The batches whose statistics training takes: whole updates, where micro-batches share theirs.
  std::unique_ptr<task::Stream> batches() const {
    const TrainOptions& train = job_.train();
    const auto batches_of = [&](std::int64_t rows) {
      return job_.splits().stream(task::Split::kTrain,
                                  {.batch = rows, .shuffle = std::uint64_t(train.seed)});
    };
    std::unique_ptr<task::Stream> single = batches_of(train.batch);
    const std::int64_t parts = std::min(train.accumulate, single->steps(0));
    return parts > 1 && shares_statistics(job_) ? batches_of(train.batch * parts)
                                                : std::move(single);
  }
  // Training's forward. The averages that it would leave are outputs, and nothing persists.
  Graph build(const task::Sizes& sizes) {
    Graph g;
    nn::Net net = sampling_net(g, job_, nn::Mode::kProbe);
    const task::Inputs inputs = add_inputs(g, job_.network(), sizes);
    g.mark_output("loss", job_.network().build(net, inputs).loss_sum);
    refuse_running_norms(g);
    check(g.leaves(NodeKind::kCarry).empty(), ErrorKind::kUsage,
          "population statistics: expected batches that do not go on from each other; those of {} "
          "carry a state",
          job_.task().name());
    const std::vector<Application> applications = applications_of(g);
    check(!applications.empty(), ErrorKind::kUsage,
          "population statistics: expected a norm over the batch, such as batchnorm; {} has none",
          job_.task().name());
    for (const Application& application : applications) {
      for (const Statistic& s : application) {
        check(s.keep < 1, ErrorKind::kUsage, "{}: expected keep < 1, got 1", s.leaf);
        g.mark_output(output_of(s.next), s.next);
        clear(g, s.leaf);
      }
    }
    applications_[sizes] = applications;
    return g;
  }

  // Sets an average to almost 0, which adds no rounding to what a batch gives.
  void clear(const Graph& graph, const std::string& leaf) {
    if (sums_.contains(leaf)) return;
    variables_.declare(graph);
    const Tensor stored = variables_.read(leaf, true).to(DType::kF64);
    const auto trained = stored.as<double>();
    write(leaf, std::vector<double>(trained.size(), kMarker));
    sums_[leaf] = {{trained.begin(), trained.end()}, std::vector<double>(trained.size(), 0)};
  }

  void write(const std::string& leaf, const std::vector<double>& values) {
    variables_.write(leaf, Tensor::of<double>(variables_.at(leaf).type.shape, values));
  }

  // A batch without a row leaves the averages as they are.
  void take(const Program& program, const Application& application) {
    std::vector<std::vector<double>> of_batch;
    bool has_rows = false;
    for (const Statistic& s : application) {
      const Tensor next = program.fetch(output_of(s.next), true).to(DType::kF64);
      auto& values = of_batch.emplace_back();
      for (const double now : next.as<double>()) {
        has_rows |= now != kMarker;
        const double value = (now - s.keep * kMarker) / (1 - s.keep);
        values.push_back(std::abs(value) > kMarker ? value : 0);
      }
    }
    if (!has_rows) return;
    for (std::size_t i = 0; i < application.size(); ++i) {
      sums_.at(application[i].leaf).add(of_batch[i]);
    }
  }

  Variables& variables_;
  const Job& job_;
  Arena arena_;
  Feeder feeder_;
  ProgramCache programs_;
  std::map<task::Sizes, std::vector<Application>> applications_;
  std::map<std::string, PopulationSum> sums_;  // by the leaf
};

}  // namespace

void take_population_statistics(Backend& backend, Variables& variables, const Job& job,
                                const TellPass& tell) {
  PopulationPass(backend, variables, job).run(tell);
}

}  // namespace keel::train
