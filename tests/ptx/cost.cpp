#include "tests/ptx/cost.h"

namespace keel::ptx {
namespace {

bool has(std::string_view name, std::string_view part) {
  return name.find(part) != std::string_view::npos;
}

Class class_of_access(const Access& access) {
  switch (access.space) {
    case Space::kGlobal:
      return Class::kGlobal;
    case Space::kShared:
      return Class::kShared;
    case Space::kLocal:
      return Class::kLocal;
    default:
      return Class::kNothing;
  }
}

bool is_nothing(std::string_view name) {
  return name.starts_with("mov.") || name.starts_with("cvta.") || name.starts_with("(") ||
         name.starts_with("ret") || name.starts_with("exit");
}

bool is_control(std::string_view name) {
  return name.starts_with("bra") || name.starts_with("bar.");
}

bool is_wide(std::string_view name) {
  return has(name, ".s64") || has(name, ".u64") || has(name, ".b64") || has(name, ".f64");
}

// Quotients and roots are made of other instructions. The CUDA C++ Programming Guide says "up to
// 20" of an integer quotient of 32 bits; of the others no number is public: they are assumed to be
// at least two steps of Newton with the last rounding.
int count_of(std::string_view name) {
  const bool is_quotient = name.starts_with("div.") || name.starts_with("rem.");
  const bool is_float = name.ends_with(".f32") || name.ends_with(".f64");
  if (is_quotient && !is_float) return is_wide(name) ? 40 : 20;
  if (is_quotient || name.starts_with("sqrt.rn") || name.starts_with("rcp.rn")) return 8;
  if (has(name, "mul.wide") || has(name, "mad.wide")) return 1;
  if (is_float || !is_wide(name)) return 1;
  return name.starts_with("mul") || name.starts_with("mad") ? 4 : 2;
}

}  // namespace

Cost cost_of(const Instruction& instruction) {
  const std::string_view name = instruction.form->name;
  if (instruction.access.space != Space::kNone) {
    const Class type = class_of_access(instruction.access);
    return {type, type == Class::kNothing ? 0 : 1};
  }
  if (is_nothing(name)) return {Class::kNothing, 0};
  if (is_control(name)) return {Class::kControl, 1};
  if (name.starts_with("shfl.")) return {Class::kShuffle, 1};
  if (name.starts_with("cvt.")) {
    return {is_wide(name) ? Class::kWideConversion : Class::kConversion, 1};
  }
  if (has(name, ".approx.")) return {Class::kSpecial, 1};
  if (name.starts_with("setp.") || name.starts_with("selp.")) return {Class::kInteger, 1};
  if (name.ends_with(".f64")) return {Class::kDouble, count_of(name)};
  if (name.ends_with(".f32")) return {Class::kFloat, count_of(name)};
  return {Class::kInteger, count_of(name)};
}

}  // namespace keel::ptx
