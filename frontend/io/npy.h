// One array in NumPy's .npy format, read without trusting it.
#pragma once

#include <string>
#include <string_view>

#include "src/core/tensor.h"

namespace keel::io {

// The array in `bytes`: versions 1.0, 2.0 and 3.0, little-endian f4, f8, i4, i8 (whose
// values must fit i32), u1 and b1 (as u8; any byte but 0 is true, 1), up to eight axes of
// one or more. Fortran order is transposed. `who` begins every message. Throws
// Error{kBadInput}; allocates nothing before it has checked the sizes against those of the
// data.
Tensor parse_npy(std::string_view bytes, const std::string& who);

// The file that numpy.save would write, version 1.0 in C order.
std::string npy_bytes(const Tensor& array);
// The part of that file before the array's own bytes.
std::string npy_header(const Tensor& array);

}  // namespace keel::io
