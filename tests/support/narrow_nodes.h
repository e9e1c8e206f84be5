// Nodes of norms that read or store bf16 beside the same nodes in float32.
#pragma once

#include "tests/support/graph_runner.h"

namespace keel::test {

// Runs every node of a graph in float32 and, besides, every node of a norm on its x and dy rounded
// to bf16, in the four ways in which these and output 0 may be stored: as float32 or as bf16.
// CHECKs that the outputs are bit for bit the same, output 0 rounded where it is stored in bf16,
// and that dx written over dy is the same, too. Returns the number of nodes that were compared.
int check_narrow_nodes(Backend& backend, const Graph& graph, const Feeds& feeds);

}  // namespace keel::test
