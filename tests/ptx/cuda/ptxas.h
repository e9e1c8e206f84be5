// The messages of ptxas about kernels while they were compiled.
#pragma once

#include <string>

namespace keel::ptx {

// The most registers that a thread of the kernel has on any architecture, by the files that
// backends/cuda/compile.py wrote into the folder KEEL_PTX_PTXAS; 0 if it is not known.
int registers_by_ptxas(const std::string& kernel);

}  // namespace keel::ptx
