// Trainings in memory by the trainer of `keel train`, which a study looks into.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "frontend/train/trainer.h"
#include "frontend/train/update_probe.h"
#include "studies/observers.h"

namespace keel::study {

// The settings of such a training: it is as long as train.max_steps says, or as the recipe, and
// measures nothing on its own.
const task::OptionValues& memory_settings();

// A line that an observer wrote.
struct ObservedLine {
  std::int64_t step = 0;  // the number of the update
  nlohmann::ordered_json values;
};
// Trains to the end and returns what an observer writes.
std::vector<ObservedLine> train_lines(Backend& backend, const train::Job& job,
                                      train::Observer& observer);

// After an update.
struct TrainedStep {
  const Program* program;  // of StepObserver::mark, run before the update; null without mark
  std::int64_t step;       // updates before it
  double epoch;            // epochs completed with it, in parts
  double loss;             // the mean over the whole update
  double part;             // of the update's items: those that the program had
};

// A study's view of a training besides its losses.
struct StepObserver {
  // Adds outputs to the forward and backward of an update's first micro-batch (UpdateProbe).
  train::UpdateProbe::Mark mark = nullptr;
  std::vector<std::string> gradients = {};  // of these parameters, as outputs "gradient/NAME"
  // Before an update.
  std::function<void(const train::ObservedUpdate& update)> expect =
      [](const train::ObservedUpdate&) {};
  std::function<void(const TrainedStep& step)> look = [](const TrainedStep&) {};
};

// A study's view of a pass: the outputs that it adds to a graph, and every run of the graph.
struct PassObserver {
  std::function<void(Graph& graph)> mark;
  std::function<void(const Program& program)> look;
};

// These look at weights, and change nothing.

// Runs the forward of every batch of the first epoch as training computes it.
void pass_over(Backend& backend, Variables& variables, const train::Job& job,
               const PassObserver& observer);
// |dloss/dv|_2 over the first batch; v is an output that the network marks in a probe.
double gradient_norm(Backend& backend, Variables& variables, const train::Job& job,
                     const std::string& output);
// Throws Error{kDiverged} when the mean loss is not finite.
train::Evaluation evaluation_of(train::Evaluator& evaluator, const train::Job& job,
                                task::Split split);
// Declares the network's variables, and sets them to a checkpoint's.
void load_network(const io::TensorFile& file, const std::string& path, Variables& variables,
                  const train::Job& job);

class Training {
 public:
  // Sets first values. Backend and job must outlive the object.
  Training(Backend& backend, const train::Job& job);

  // Runs all updates. Throws Error{kDiverged} at a loss or a gradient that is not finite. A signal
  // ends the process.
  void run(const StepObserver& observer = {});

  // The number of updates that it takes.
  std::int64_t total_steps() const { return trainer_.total_steps(); }
  // The present parameters and states.
  Variables& variables() { return trainer_.variables(); }
  train::Evaluation evaluate(task::Split split) { return evaluation_of(evaluator_, job_, split); }
  void decode(task::Decoder& decoder) { evaluator_.decode(decoder); }
  // The "loss", the "grad_norm" and every scalar output of the marked graph: its value of each
  // update so far.
  const std::map<std::string, std::vector<double>>& traces() const { return eye_.traces; }

 private:
  // Passes on what the trainer shows.
  struct Eye final : train::Observer {
    std::string name() const override { return "study"; }
    bool looks_at(const train::ObservedUpdate&) const override { return true; }
    void before(const train::ObservedUpdate& update) override;
    void after(const train::ObservedUpdate& update, const train::StepResult& result) override;

    const StepObserver* observer = nullptr;
    std::unique_ptr<train::UpdateProbe> probe;
    const Program* program = nullptr;
    std::map<std::string, std::vector<double>> traces;
  };

  const train::Job& job_;
  Eye eye_;
  train::Trainer trainer_;
  train::Evaluator evaluator_;
};

}  // namespace keel::study
