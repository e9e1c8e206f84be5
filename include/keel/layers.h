// Layers and norms by name: objects that make their parameters once and add nodes when they are
// applied. They need a graph and a place in it, nn::Net.
#pragma once

#include "frontend/nn/ada_layer_norm.h"
#include "frontend/nn/embedding.h"
#include "frontend/nn/init.h"
#include "frontend/nn/layers.h"
#include "frontend/nn/norm.h"
#include "frontend/nn/norm_layer.h"
#include "frontend/nn/recurrent.h"
#include "include/keel/graph.h"
