// One array in NumPy's .npy format, read without trusting it.
#pragma once

#include <string>
#include <string_view>

#include "src/core/tensor.h"

namespace keel::io {

// The array in `bytes`: versions 1.0, 2.0 and 3.0, little-endian f4, f8, i4, i8 (whose values must
// fit i32), u1 and b1 (as u8; any byte but 0 is true, 1), up to eight axes of one or more. Fortran
// order is transposed.
// `who` begins every message. Throws Error{kBadInput}; nothing is allocated before the sizes are
// known to be those of the data.
Tensor parse_npy(std::string_view bytes, const std::string& who);

// The file that numpy.save would write, version 1.0 in C order.
std::string npy_bytes(const Tensor& array);
// What stands before the array's own bytes in it.
std::string npy_header(const Tensor& array);

}  // namespace keel::io
