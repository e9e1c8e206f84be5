// Training a task of the zoo in memory, with an eye on every step: no folder, no checkpoints.
#pragma once

#include <functional>

#include "frontend/train/evaluator.h"
#include "src/runtime/program_cache.h"
#include "studies/study.h"

namespace keel::study {

// What a study trains unless its options say otherwise.
struct ZooRun {
  std::string task, norm;
  int steps = 0;
  task::OptionValues settings = {};  // on top of the recipe `laptop`
};

// The task or the norms that are asked for, or else those of the study.
std::string task_of(const Options& options, const std::string& task);
std::vector<std::string> norms_of(const Options& options, const std::vector<std::string>& norms);
// The run with the i-th seed from the first on, for weights, batches and data that are drawn; the
// options' settings come last. The network knows what it takes from the data.
train::Config zoo_config(const Options& options, int i, const ZooRun& run);

// After an update.
struct ZooStep {
  const Program& program;
  const task::Batch& batch;
  std::int64_t step;  // updates before it
  double epoch;       // epochs completed with it, in parts
  double loss;
};

struct ZooObserver {
  // Adds outputs to the graph of a step, one for every size of batch.
  std::function<void(Graph& graph)> mark = [](Graph&) {};
  // Before an update, with its batch.
  std::function<void(std::int64_t step, const task::Batch& batch)> expect =
      [](std::int64_t, const task::Batch&) {};
  std::function<void(const ZooStep& step)> look = [](const ZooStep&) {};
};

// What is seen of a pass: the outputs that it adds to a graph, and every run of it.
struct ZooPass {
  std::function<void(Graph& graph)> mark;
  std::function<void(const Program& program)> look;
};

class ZooTraining {
 public:
  // Loads the data and draws first values. Both arguments must outlive the object.
  ZooTraining(Backend& backend, const train::Config& config);
  ZooTraining(const ZooTraining&) = delete;
  ZooTraining& operator=(const ZooTraining&) = delete;

  // config.train().max_steps updates, in epochs of shuffled batches. Throws Error{kDiverged} at a
  // loss or a gradient that is not finite.
  void run(const ZooObserver& observer);
  // The forward of every batch of the first epoch as training computes it, in a probe: changes
  // nothing.
  void pass(const ZooPass& seen);
  train::Evaluation evaluate(task::Split split);
  void decode(task::Decoder& decoder) { evaluator_.decode(decoder); }
  // Parameters and states as they are now.
  const Variables& variables() const { return variables_; }

 private:
  void initialize();
  void feed(Program& program, const task::Batch& batch, std::int64_t step) const;

  Backend& backend_;
  const train::Config& config_;
  std::unique_ptr<task::Splits> data_;
  std::unique_ptr<task::Stream> train_;
  Variables variables_;
  train::Feeder feeder_;
  train::Evaluator evaluator_;
};

}  // namespace keel::study
