// The instruction set that the SIMD kernels use on this machine.
#pragma once

#include <cstdint>
#include <string>

namespace keel::onednn {

// "AVX3" (AVX-512), "AVX2" or "SCALAR" (plain x86-64 code): the choice of run-time dispatch.
std::string simd_target();

// The instruction sets that this build has kernels for, as bits of Highway's targets.
std::int64_t simd_targets();

}  // namespace keel::onednn
