// The graphs of a run for a batch of given sizes: first values, one whole training step,
// evaluation.
//
// Inputs of every graph: the network's own, and "weight" () f32. The output "loss" () is the summed
// loss times the weight: with 1 / the items of a whole update it is the update's mean loss, spread
// over its micro-batches, and it is what a step differentiates. Training graphs also take what
// random numbers are keyed by: "tick" () i32, the number of the update, and "first_row" () i32,
// that of the micro-batch's first row in its update. A step takes "lr" () f32 and "step" () i32,
// the number of the update, and has the outputs "grad_norm" () and what its layers watch; with
// train.on_nonfinite = skip also "guard" (), which is not finite when any loss or gradient of the
// update is not: no leaf then takes a new value.
#pragma once

#include <string_view>

#include "frontend/nn/net.h"
#include "frontend/train/job.h"

namespace keel::train {

// Adds the network's inputs for a batch of these sizes.
task::Inputs add_inputs(Graph& graph, const task::Network& network, const task::Sizes& sizes);

// A net that may draw random numbers, keyed by the inputs "tick" and "first_row", which it adds.
nn::Net drawing_net(Graph& graph, const Job& job, nn::Mode mode);

// Forward only, of the first batch: updates the parameters whose first values depend on data, all
// layers in one run. No updates: there are none.
Graph build_initialize(const Job& job, const task::Sizes& sizes);

// Forward, backward, clipping, optimizer and running statistics as one graph. With
// train.accumulate > 1 it adds its gradients to those gathered before, and clears them after; the
// gathered sums are whole gradients. Otherwise large tables have gradients as rows (RowChoice).
// `watches` takes what its layers watch, the i-th being the output watch_output(i); null: nobody
// looks, and these outputs are not there.
Graph build_step(const Job& job, const task::Sizes& sizes,
                 std::vector<nn::Watch>* watches = nullptr);
// For a batch of the sizes that the network gives for train.batch.
Graph build_step(const Job& job, std::vector<nn::Watch>* watches = nullptr);
std::string watch_output(std::size_t i);

// Forward and backward of one micro-batch; gradients are added to the state "<parameter>.sum".
Graph build_accumulate(const Job& job, const task::Sizes& sizes);
// Whether a state is such a sum; it is zero between updates.
bool is_gathered(std::string_view state);

// Forward only, in evaluation mode: "loss", sum_output and perhaps count_output of every metric
// that the network counts, and its predictions under kPrediction + their names.
Graph build_evaluate(const Job& job, const task::Sizes& sizes, nn::Kept kept = nn::Kept::kNothing);
// A network that a decoder asks for (Batch::network), with its predictions as above.
Graph build_search(const Job& job, std::string_view name, const task::Sizes& sizes);
// Writes what build_evaluate with Kept::kRead reads. No updates: nothing is kept.
Graph build_keep(const Job& job);
std::string sum_output(const std::string& metric);
std::string count_output(const std::string& metric);
inline constexpr std::string_view kPrediction = "prediction/";

}  // namespace keel::train
