// The graphs of a run for a batch of given sizes: first values, one whole training step,
// evaluation.
//
// Inputs of every graph: the network's own, and "weight" () f32. The output "loss" () is the summed
// loss times the weight. A step differentiates it: with the weight 1 / (items of the whole update),
// the losses of an update's micro-batches add up to its mean loss. Training graphs also take the
// keys of random numbers: "step" () i32, the number of the update, and "first_row" () i32, the
// number of the micro-batch's first row in its update. A step also takes "lr" () f32.
// It outputs "grad_norm" () and the values that its layers monitor. With
// train.on_nonfinite = skip it also outputs "guard" (), which is not finite when any loss or
// gradient of the update is not finite: then no leaf takes a new value.
#pragma once

#include <string_view>

#include "frontend/nn/net.h"
#include "frontend/train/job.h"

namespace keel::train {

// Adds the network's inputs for a batch of these sizes.
task::Inputs add_inputs(Graph& graph, const task::Network& network, const task::Sizes& sizes);

// A net that may draw random numbers, keyed by the inputs "step" and "first_row", which it adds.
nn::Net sampling_net(Graph& graph, const Job& job, nn::Mode mode);

// Adds the network for a batch of these sizes, and the output "loss".
task::Outputs add_network(nn::Net& net, const task::Network& network, const task::Sizes& sizes);
// The parameters that train, in the order in which they were added.
std::vector<Value> parameters_of(const Graph& graph);

// The graph of a training step with the factors of its products in the type train.compute.
Graph computed(Graph graph, const TrainOptions& train);

// Runs the first batch forward and updates the parameters whose first values depend on data, all
// layers in one run. A graph without updates: there are no such parameters.
Graph build_initialize(const Job& job, const task::Sizes& sizes);

// Forward, backward, clipping, optimizer and running statistics as one graph. If train.accumulate
// is above 1, it adds its gradients to the sums gathered before, and clears the sums afterwards;
// these are whole gradients. Otherwise the gradients of large tables are rows (RowChoice).
// `monitors` receives what the layers monitor, and output monitor_output(i) is the value of monitor
// i. Null: nobody looks, and the graph does not have these outputs.
Graph build_step(const Job& job, const task::Sizes& sizes,
                 std::vector<nn::Monitor>* monitors = nullptr);
// For a batch of the sizes that the network gives for train.batch.
Graph build_step(const Job& job, std::vector<nn::Monitor>* monitors = nullptr);
std::string monitor_output(std::size_t i);

// Forward and backward of one micro-batch; gradients are added to the state "<parameter>.sum".
Graph build_accumulate(const Job& job, const task::Sizes& sizes);
// Whether a state is such a sum. These sums are zero between updates.
bool is_gathered(std::string_view state);

// Forward only, in evaluation mode: "loss", sum_output and, where there is one, count_output of
// every metric that the network counts, and its predictions under kPrediction + their names.
Graph build_evaluate(const Job& job, const task::Sizes& sizes, nn::Kept kept = nn::Kept::kNothing);
// A network that a decoder asks for (Batch::network), with its predictions as above.
Graph build_search(const Job& job, std::string_view name, const task::Sizes& sizes);
// Writes the values that build_evaluate with Kept::kRead reads. No updates: nothing is kept.
Graph build_keep(const Job& job);
std::string sum_output(const std::string& metric);
std::string count_output(const std::string& metric);
inline constexpr std::string_view kPrediction = "prediction/";

}  // namespace keel::train
