// The caller's arrays of `keel norm`.
#pragma once

#include <string>
#include <vector>

#include "frontend/io/npz.h"

namespace keel::cli {

// The arrays of an .npz file (io::read_npz). Throws Error{kBadInput} naming file and array for a
// finite number that `dtype`, f32 or f64, cannot hold.
io::Arrays read_norm_arrays(const std::string& path, DType dtype);

// The prefixes of the names of each step's arrays: "" for x, or "s0.", "s1.", ... for s0.x, s1.x,
// ... Throws Error{kBadInput} naming `path` for both or neither, and for a missing step.
std::vector<std::string> step_prefixes(const io::Arrays& given, const std::string& path);

// Type and shape for a message, the type as the file may have it: i8 is read as i32.
std::string given_type(const Tensor& array);

}  // namespace keel::cli
