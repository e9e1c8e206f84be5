// The graphs of a run: first values, one whole training step, and evaluation.
//
// Inputs of every graph: the model's own. Training graphs also take "lr" () f32, "step" () i32,
// the number of the update, and what random numbers are keyed by: "tick" () i32, the number of the
// update as well, and "first_row" () i32, that of the micro-batch's first row in its update.
// Outputs: "loss", "errors" (both ()), and "grad_norm" () of a step. Watched values of a step, too,
// are outputs.
#pragma once

#include "frontend/nn/net.h"
#include "frontend/train/config.h"

namespace keel::train {

// Adds the model's inputs for a batch of that size, in the order of model.inputs().
std::vector<Value> add_inputs(Graph& graph, const task::Model& model, std::int64_t batch);

// Forward only, of the first batch: updates the parameters whose first values depend on data, all
// layers in one run. No updates: there are none. Takes "tick" and "first_row" as well.
Graph build_initialize(const Config& config);

// Forward, backward, clipping, optimizer and running statistics as one graph. With
// accumulate = N > 1 it adds its gradients / N to those gathered before, and clears them after.
// `watches` takes what its layers watch, the i-th being the output watch_output(i); null: nobody
// looks, and these outputs are not there.
Graph build_step(const Config& config, std::vector<nn::Watch>* watches = nullptr);
std::string watch_output(std::size_t i);

// Forward and backward of one micro-batch; gradients / N are added to the state "<parameter>.sum".
Graph build_accumulate(const Config& config);

// Forward only, in evaluation mode, for a batch of that size.
Graph build_evaluate(const Config& config, std::int64_t batch);

}  // namespace keel::train
