// Which instruction set the SIMD kernels run on here.
#pragma once

#include <string>

namespace keel::onednn {

// "AVX3" (AVX-512), "AVX2" or "SCALAR" (plain x86-64 code): what run-time dispatch picked.
std::string simd_target();

}  // namespace keel::onednn
