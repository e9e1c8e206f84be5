// The cost of an instruction on a device, as far as that is public: its class and how many of the
// device's own instructions it stands for.
#pragma once

#include <array>

#include "tests/ptx/instruction.h"

namespace keel::ptx {

enum class Class : std::uint8_t {
  kNothing,  // a move, a parameter: ptxas names the register or the constant in its place
  kFloat,
  kInteger,  // logic, comparisons and choices, too
  kDouble,
  kSpecial,
  kConversion,
  kWideConversion,  // from or to 64 bits
  kShuffle,
  kControl,
  kGlobal,
  kShared,
  kLocal,
};
inline constexpr int kClasses = 12;
inline constexpr std::array<const char*, kClasses> kClassNames = {
    "nothing",         "float",   "integer", "double", "special", "conversion",
    "wide_conversion", "shuffle", "control", "global", "shared",  "local"};

struct Cost {
  Class type = Class::kInteger;
  int count = 1;  // of the device's instructions
};

Cost cost_of(const Instruction& instruction);

}  // namespace keel::ptx
