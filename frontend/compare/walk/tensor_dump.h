// Dumps the tensors of nodes that diverge, for other programs to read.
#pragma once

#include <filesystem>

#include "frontend/compare/walk/step_walk.h"

namespace keel::compare {

// For every report that diverges, writes a file "<path>.<backend>.step<N>.npz" into the folder,
// with dots for slashes in the path: in<i>, expected<j>, got<j> and bound<j>. Makes the folder when
// it is first needed. Calls of the sink throw Error{kIo}.
NodeSink dump_of_divergences(const std::filesystem::path& folder);

}  // namespace keel::compare
