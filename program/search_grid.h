// The grid of `keel train --search`: the keys that are searched, and the settings at its points.
#pragma once

#include <string>
#include <vector>

#include "frontend/train/config.h"
#include "program/commands.h"

namespace keel::cli {

// A key of the recipe, or "norm.NAME" for an option of the norm, with the values to try.
struct SearchKey {
  std::string key;
  std::vector<std::string> values;
};

// Reads "key=v1,v2,..." once per key. Commas between braces or brackets belong to a value, as in
// "model.norm=layernorm,powernorm{alpha_f=0.9,alpha_b=0.9}". Throws Error{kUsage} for a text that
// is no such list, for an empty value or one given twice, for a key given twice or also by another
// option of `args`, for seeds and data, which are no settings to choose, and for a grid of one
// point or of very many.
std::vector<SearchKey> read_searches(const TrainArgs& args);

// A point of the grid: the recipe there, and the arguments of the training that is by it.
struct GridPoint {
  std::vector<std::string> values;  // one for each key
  std::string name;                 // "train.lr=0.1 norm.alpha_f=0.9"
  std::string folder;               // the same as one name of a file
  RunArgs run;
  train::Config config;
};

// All points of the grid over these arguments, the values of the last key changing fastest. Throws
// Error{kUsage}, which names the point, for a key or a value that does not fit, and if two points
// are the same recipe.
std::vector<GridPoint> grid_of(const RunArgs& run, const std::vector<SearchKey>& keys);

}  // namespace keel::cli
