// The tensors of nodes that diverge, for other programs to look at.
#pragma once

#include <filesystem>

#include "frontend/compare/step_walk.h"

namespace keel::compare {

// Writes, for every report that diverges, a file "<path>.<backend>.step<N>.npz" into the folder,
// slashes being dots: in<i>, expected<j>, got<j> and bound<j>. The folder is made when it is first
// needed. Its calls throw Error{kIo}.
NodeSink dump_of_divergences(const std::filesystem::path& folder);

}  // namespace keel::compare
