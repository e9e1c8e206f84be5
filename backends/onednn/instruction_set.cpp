#include "backends/onednn/instruction_set.h"

#include <fmt/ranges.h>
#include <hwy/targets.h>

#include <cstdlib>
#include <dnnl.hpp>
#include <string>
#include <vector>

#include "backends/onednn/simd/target.h"
#include "src/core/error.h"

namespace keel::onednn {
namespace {

// The Highway target of an instruction set and the bits of all better targets: a better target has
// a lower bit.
struct Limit {
  std::int64_t target, better;
  dnnl::cpu_isa isa;
};

Limit limit_of(InstructionSet set) {
  constexpr std::int64_t kBelowAvx2 = ~(2 * HWY_AVX2 - 1);
  switch (set) {
    case InstructionSet::kBest:
      break;
    case InstructionSet::kAvx512:
      return {HWY_AVX3, HWY_AVX3 - 1, dnnl::cpu_isa::avx512_core};
    case InstructionSet::kAvx2:
      return {HWY_AVX2, HWY_AVX2 - 1, dnnl::cpu_isa::avx2};
    case InstructionSet::kScalar:
      return {kBelowAvx2, ~kBelowAvx2, dnnl::cpu_isa::sse41};
  }
  return {-1, 0, dnnl::cpu_isa::isa_default};
}

InstructionSet wanted_set() {
  const char* word = std::getenv("KEEL_ISA");
  if (word == nullptr || *word == '\0') return InstructionSet::kBest;
  try {
    return parse_choice<InstructionSet>(word);
  } catch (const Error& error) {
    fail(ErrorKind::kUsage, "KEEL_ISA: {}", error.what());
  }
}

std::int64_t targets_of(InstructionSet set) {
  return hwy::SupportedTargets() & simd_targets() & limit_of(set).target;
}

// The words that KEEL_ISA takes in this build on this processor.
std::string possible_sets() {
  std::vector<std::string_view> words;
  for (const InstructionSet set : {InstructionSet::kBest, InstructionSet::kAvx512,
                                   InstructionSet::kAvx2, InstructionSet::kScalar}) {
    if (targets_of(set) != 0) words.push_back(choice_text(set));
  }
  return fmt::format("{}", fmt::join(words, " or "));
}

// Each set is a mask that holds the bits of the sets within it.
bool has_set(dnnl::cpu_isa set) {
  const auto needed = unsigned(set);
  return (effective_instruction_set() & needed) == needed;
}

}  // namespace

void limit_instruction_set() {
  static const bool is_limited = [] {
    const InstructionSet set = wanted_set();
    const Limit limit = limit_of(set);
    check(targets_of(set) != 0, ErrorKind::kBackendMissing,
          "KEEL_ISA: expected {}, which this build and this processor have, got '{}'",
          possible_sets(), choice_text(set));
    hwy::DisableTargets(limit.better);
    dnnl::set_max_cpu_isa(limit.isa);
    return true;
  }();
  static_cast<void>(is_limited);
}

unsigned effective_instruction_set() { return unsigned(dnnl::get_effective_cpu_isa()); }

bool has_bf16_instructions() { return has_set(dnnl::cpu_isa::avx512_core_bf16); }

bool has_tile_instructions() { return has_set(dnnl::cpu_isa::avx512_core_amx); }

}  // namespace keel::onednn
