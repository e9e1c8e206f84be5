// A function's body as it is written: instructions with their operands, labels, declarations.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tests/ptx/reader.h"

namespace keel::ptx {

struct Operand {
  enum Kind {
    kName,       // a register, a variable or a label
    kNumber,     // its bits
    kAddress,    // [name + offset]
    kVector,     // {a, b}
    kPair,       // a|b
    kArguments,  // (a, b) of a call
  };
  Kind kind = kName;
  std::string name;
  std::uint64_t bits = 0;  // of a number; of an address its offset
  std::vector<Operand> parts;
};

struct Statement {
  enum Kind { kInstruction, kLabel, kRegisters, kVariable, kOpen, kClose };
  Kind kind = kInstruction;
  int line = 0;
  // "ld.global.f32" for an instruction, the name of a label, the type ".f32" of registers, the
  // space ".local" of a variable.
  std::string name;
  std::string guard;  // the predicate's name, or nothing
  bool is_negated = false;
  std::vector<Operand> operands;
  std::string prefix;  // of registers: "%r" of %r<12>, or a whole name
  int count = 0;       // of registers, 0 for one without a number
  Variable variable;
};

std::vector<Statement> statements_of(std::span<const Token> body);

}  // namespace keel::ptx
