// Which instruction set the SIMD kernels run on here.
#pragma once

#include <string>

namespace keel::onednn {

// "AVX3", "AVX2" or "SSE2": what run-time dispatch picked.
std::string simd_target();

}  // namespace keel::onednn
