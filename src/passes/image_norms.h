// The norms that know images, as the pass to_channels_last has to know them.
#pragma once

#include <vector>

#include "src/graph/graph.h"

namespace keel {

// The places of the images among the inputs of a norm over columns, or of its backward; for other
// ops nothing. Their first output is an image, too. In place of images (n, c, h, w) such an op
// takes their pixels as rows (n * h * w, c), with the same results.
std::vector<int> column_norm_images(const OpInfo& op);

// Whether a node is a layer norm, or its backward, with rows of three axes.
bool is_layer_norm_of_images(const Node& node);

}  // namespace keel
