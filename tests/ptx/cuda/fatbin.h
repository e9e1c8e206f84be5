// Finds the PTX in what nvcc puts into a program.
#pragma once

#include <string>

namespace keel::ptx {

// The PTX in a "fat binary": its only text, or the last of several. Throws Fault if there is none,
// or if it is compressed and libzstd cannot be loaded.
std::string text_of_fatbin(const void* fatbin);

}  // namespace keel::ptx
