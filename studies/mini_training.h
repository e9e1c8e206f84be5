// Training a small model for a fixed number of steps in memory: no folder, no checkpoints.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "frontend/train/evaluator.h"

namespace keel::study {

// The model on a recipe (frontend/train/config.h), with this seed for data, weights and batches,
// settings {"model.norm", "layernorm"}, ..., and unless it is 0 this number of steps.
train::Config mini_config(std::unique_ptr<task::Model> model, std::string_view recipe,
                          std::uint64_t seed, const task::OptionValues& settings, int steps = 0);

// Which rows make a batch.
enum class RowOrder {
  kDrawn,   // each drawn from all rows, with replacement
  kStream,  // the next ones; there must be enough for all steps
};

// What a study sees of a training besides its losses: the outputs that it adds to a graph, and what
// it does with them after every run.
struct Observer {
  std::function<void(Graph& graph)> mark = [](Graph&) {};
  std::function<void(const Program& program)> look = [](const Program&) {};
};

class MiniTraining {
 public:
  // Loads the data of config.model() and sets first values. The training options that count: batch,
  // max_steps, seed, optimizer, rate and schedule. Both arguments must outlive the object.
  MiniTraining(Backend& backend, const train::Config& config, RowOrder order);
  MiniTraining(const MiniTraining&) = delete;
  MiniTraining& operator=(const MiniTraining&) = delete;

  // |dloss/dv|_2 over the first batch with the weights as they are, v an output that the model
  // marks in a probe. Changes nothing.
  double gradient_norm(const std::string& output);
  // All steps. Throws Error{kDiverged} at a loss or gradient that is not finite.
  void run(const Observer& observer = {});
  // The forward of every training batch in the order of the rows, in a probe: changes nothing.
  void pass(const Observer& observer);

  // Parameters and states as they are now.
  const Variables& variables() const { return variables_; }

  // Every scalar output of the step graph, such as "loss": its value of each step so far.
  const std::map<std::string, std::vector<double>>& traces() const { return traces_; }
  // Throw Error{kDiverged} when the mean loss is not finite.
  train::Evaluation evaluate_train() { return evaluate(task::Split::kTrain); }
  train::Evaluation evaluate_test() { return evaluate(task::Split::kTest); }

 private:
  void initialize();
  // The network as a probe; gives the mean loss.
  Value add_probe(Graph& graph) const;
  void feed(Program& program, std::int64_t step);
  void feed_rows(Program& program, const std::vector<std::int64_t>& rows);
  void record(const Program& program, std::int64_t step);
  train::Evaluation evaluate(task::Split split);
  std::vector<std::int64_t> rows(std::int64_t step) const;

  Backend& backend_;
  const train::Config& config_;
  std::unique_ptr<task::Splits> data_;
  std::unique_ptr<task::Stream> train_;
  RowOrder order_;
  Variables variables_;
  train::Feeder feeder_;
  train::Evaluator evaluator_;
  std::map<std::string, std::vector<double>> traces_;
};

}  // namespace keel::study
