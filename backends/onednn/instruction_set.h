// The instruction set of our SIMD kernels and of oneDNN's primitives.
#pragma once

#include "src/core/choice.h"

namespace keel::onednn {

enum class InstructionSet { kBest, kAvx512, kAvx2, kScalar };
constexpr auto choice_words(InstructionSet) {
  return std::to_array<std::string_view>({"best", "avx512", "avx2", "scalar"});
}

// Lets this process use no better instruction set than KEEL_ISA in the environment names, so that
// one machine can test and time the kernels of another; `best`, or nothing, is what the processor
// has. "scalar" stands for plain x86-64 code of ours and SSE4.1 of oneDNN's. Only the first call in
// a process does anything. Throws Error{kUsage} for another word, Error{kBackendMissing} where the
// processor or the build has not got that set (a build with -Dsimd=native has one alone).
void limit_instruction_set();

}  // namespace keel::onednn
