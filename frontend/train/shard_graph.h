// The graphs of a step that is cut into shards: one for the gradients of a shard, and one for the
// update by their sums.
//
// A shard's graph has the inputs of a step (step_graph.h) besides "lr" and "step", and updates
// nothing: every shard starts from the states before the update. Its outputs are "loss", what its
// layers monitor, and the gradient of each parameter and the next value of each state,
// under kSummed + NAME  those that differ between shards; those of states are averaged in the end;
//   a gradient may be the sum of this and of kSummed + NAME + "+1", "+2" and so on;
// under kWhole + NAME   those that are the same in every shard: states of whole numbers and, with
//   train.statistics = synchronised, the states, gains and biases of norms over the batch.
// Where such norms share their statistics, shards meet (src/ops/shard_parts.h).
#pragma once

#include "frontend/train/step_graph.h"

namespace keel::train {

inline constexpr std::string_view kSummed = "summed/", kWhole = "whole/";

// Whether the shards and micro-batches of an update share the statistics of norms over the batch.
bool shares_statistics(const Job& job);

// Throws Error{kUsage} if the network has carries.
Graph build_shard(const Job& job, const task::Sizes& sizes, std::vector<nn::Monitor>* monitors);

// Clipping, optimizer and states, from the outputs of any shard's graph as inputs of the same
// names, "loss", "lr" and "step", and "state_weight" () f32, by which sums of states become their
// mean. Its output is "grad_norm", with train.on_nonfinite = skip also "guard".
Graph build_update(const Job& job, const Graph& shard);

}  // namespace keel::train
