// The folder of a search: which search it holds.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "program/search_grid.h"

namespace keel::cli {

// search.toml in the folder is the recipe that the points share, with keel's version, the backend
// and the searched keys. Writes it, or throws Error{kUsage}, which names what differs, if it is
// there with something else: other keys, another recipe, another version of keel. More or fewer
// values of the same keys are the same search, whose finished trainings stay; so is another metric.
// Throws Error{kUsage} for the folder of a run, Error{kIo}, and Error{kBadInput} for a file that no
// search writes.
void settle_search_folder(const std::filesystem::path& folder, const std::vector<SearchKey>& keys,
                          const RunArgs& run);

// The recipe that was chosen. A search that has not ended has none.
std::filesystem::path chosen_recipe(const std::filesystem::path& folder);

}  // namespace keel::cli
