// Training in memory with access to every step: no folder, no checkpoints.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "frontend/io/safetensors.h"
#include "frontend/train/evaluator.h"

namespace keel::study {

// The order in which rows make batches.
enum class RowOrder {
  kEpochs,  // epochs of shuffled batches, as in `keel train`
  kDrawn,   // each row drawn from all rows, with replacement
  kStream,  // the next rows; all steps together must not need more than there are
};

// After an update. Program and batch are those of its last batch, and of its only one unless
// train.accumulate is above 1.
struct TrainedStep {
  const Program& program;
  const task::Batch& batch;
  std::int64_t step;  // updates before it
  double epoch;       // epochs completed with it, in parts
  double loss;        // the mean over the whole update
};

// A study's view of a training besides its losses.
struct StepObserver {
  // Adds outputs to the graphs of a step: one for every size of batch, and others for the batches
  // of an update before its last.
  std::function<void(Graph& graph)> mark = [](Graph&) {};
  // After a batch of an update before its last.
  std::function<void(const Program& program)> gather = [](const Program&) {};
  // Before the last batch of an update, with that batch.
  std::function<void(std::int64_t step, const task::Batch& batch)> expect =
      [](std::int64_t, const task::Batch&) {};
  std::function<void(const TrainedStep& step)> look = [](const TrainedStep&) {};
};

// A study's view of a pass: the outputs that it adds to a graph, and every run of the graph.
struct PassObserver {
  std::function<void(Graph& graph)> mark;
  std::function<void(const Program& program)> look;
};

class Training {
 public:
  // Draws first values. It uses these training options: batch, accumulate, max_steps, seed,
  // optimizer, rate and schedule. Backend and job must outlive the object. Throws Error{kUsage} if
  // accumulate is above 1 and rows do not come in epochs.
  Training(Backend& backend, const train::Job& job, RowOrder order = RowOrder::kEpochs);
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  // Sets weights and states to those of a checkpoint of the same network.
  void load(const io::TensorFile& file, const std::string& path);
  // Runs all updates. Throws Error{kDiverged} at a loss or a gradient that is not finite.
  void run(const StepObserver& observer = {});
  // Runs the forward of every whole batch of the first epoch as training computes it, in a probe:
  // changes nothing. Rows are in their own order unless they come in epochs.
  void pass(const PassObserver& observer);
  // |dloss/dv|_2 over the first batch with the present weights; v is an output that the network
  // marks in a probe. Changes nothing.
  double gradient_norm(const std::string& output);
  // Throws Error{kDiverged} when the mean loss is not finite.
  train::Evaluation evaluate(task::Split split);
  void decode(task::Decoder& decoder) { evaluator_.decode(decoder); }

  // The present parameters and states.
  const Variables& variables() const { return variables_; }
  // Every scalar output of the graph of an update's last batch, such as "grad_norm": its value of
  // each update so far. "loss" is the mean over the whole update.
  const std::map<std::string, std::vector<double>>& traces() const { return traces_; }

 private:
  void initialize();
  // The network of a probe for a batch of these sizes; gives the summed loss.
  Value add_probe(Graph& graph, const task::Sizes& sizes) const;
  // The number of an update's batches, and the items of all of them.
  struct UpdateSize {
    std::int64_t batches = 1;
    double items = 0;
  };
  UpdateSize size_of(std::int64_t step);
  // Adds up the gradients of all batches of an update but the last, and moves the point to the
  // last; gives the sum of their losses.
  double gather(ProgramCache& programs, const UpdateSize& size, const StepObserver& observer,
                train::StepPoint& point);
  // The i-th batch of an update.
  const task::Batch& batch_of(std::int64_t step, std::int64_t i = 0);
  // Goes to the epoch of an update. Updates are asked for in their order, or from the first again.
  void go_to(std::int64_t step);
  // The number of updates of the present epoch; its last one may have fewer batches.
  std::int64_t updates() const;
  std::vector<std::int64_t> rows_of(std::int64_t step) const;
  double rate(std::int64_t step) const;
  void record(const Program& program, std::int64_t step, double loss);

  Backend& backend_;
  const train::Job& job_;
  RowOrder order_;
  std::unique_ptr<task::Stream> train_;
  std::uint32_t epoch_ = 0;       // of the last batch
  std::int64_t epoch_begin_ = 0;  // its first update
  Variables variables_;
  train::Feeder feeder_;
  train::Evaluator evaluator_;
  std::map<std::string, std::vector<double>> traces_;
};

}  // namespace keel::study
