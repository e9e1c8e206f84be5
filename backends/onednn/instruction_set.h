// The instruction set of our SIMD kernels and of oneDNN's primitives.
#pragma once

#include "src/core/choice.h"

namespace keel::onednn {

enum class InstructionSet { kBest, kAvx512, kAvx2, kScalar };
constexpr auto choice_words(InstructionSet) {
  return std::to_array<std::string_view>({"best", "avx512", "avx2", "scalar"});
}

// Lets this process use at most the instruction set that KEEL_ISA in the environment names, so that
// one machine can test and time the kernels of another. `best`, or nothing, means all that the
// processor has. "scalar" means plain x86-64 code in keel and SSE4.1 in oneDNN. Only the first call
// in a process has an effect. Throws Error{kUsage} for another word, Error{kBackendMissing} if the
// processor or the build lacks that set (a build with -Dsimd=native has only one).
void limit_instruction_set();

// The instruction set that oneDNN may use, which ONEDNN_MAX_CPU_ISA may limit, too: the bits of
// dnnl::cpu_isa.
unsigned effective_instruction_set();

// Whether oneDNN may use the processor's instructions for products of bf16.
bool has_bf16_instructions();
// Whether it may use those of tiles, AMX_BF16.
bool has_tile_instructions();

}  // namespace keel::onednn
