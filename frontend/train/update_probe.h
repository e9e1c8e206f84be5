// Computes the first micro-batch of an update as the update itself will, forward and backward, with
// the same random numbers, and changes nothing. Where a batch is cut into shards whose statistics
// are local, it is the first shard of the micro-batch.
#pragma once

#include <functional>
#include <memory>

#include "frontend/train/observer.h"

namespace keel::train {

class UpdateProbe {
 public:
  // Adds the outputs that a caller wants to a graph that has the output "loss", the part of the
  // batch in the mean loss of the update, and its gradients. There is a graph for each size.
  using Mark = std::function<void(Graph& graph)>;

  struct Outputs {
    Mark mark = [](Graph&) {};
    std::vector<std::string> gradients = {};  // of these parameters, as "gradient/NAME"
    bool stay = false;  // valid until the next run of the probe, not only until the update
  };

  // Belongs to the run of the update.
  UpdateProbe(const ObservedUpdate& update, Outputs outputs);

  // The program after its run; null for a shard without rows.
  const Program* run(const ObservedUpdate& update);

 private:
  const Job& job_;
  Outputs outputs_;
  Feeder feeder_;
  std::unique_ptr<task::Stream> first_shard_;  // null: batches are whole
  ProgramCache programs_;
};

// The graph of an update's forward and backward, in train.compute = f32, with the marks of a probe.
Graph build_probe(const Job& job, const task::Sizes& sizes, const UpdateProbe::Outputs& outputs);

}  // namespace keel::train
