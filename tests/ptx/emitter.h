// Writes a kernel's instructions: each with the places of its operands.
#pragma once

#include "tests/ptx/names.h"
#include "tests/ptx/statement.h"

namespace keel::ptx {

// The instruction of this name. Throws Fault if it is not known.
const Form& form_of(std::string_view name, int line);

class Emitter {
 public:
  Emitter(const Module& module, Code& code) : code_(code), names_(module, code) {}

  Names& names() { return names_; }
  // How many instructions there are: the place of the next one.
  int end() const { return int(code_.instructions.size()); }
  // The symbol of a name. Throws Fault if it is not known.
  Symbol find(const std::string& name, int line);
  // An instruction with the statement's predicate, but without operands yet.
  Instruction start(const Form& form, const Statement& s);
  void push(const Instruction& made) { code_.instructions.push_back(made); }
  // The register that holds an operand, which may be a number.
  std::uint32_t source(const Operand& operand, Type wanted, const Statement& s);

  void add_plain(const Form& form, const Statement& s);
  void add_move(const Form& form, const Statement& s);
  void add_access(const Form& form, const Statement& s);
  void add_prefetch(const Form& form, const Statement& s);

 private:
  Symbol find_register(const std::string& name, int line);
  std::uint32_t narrowed(const Symbol& wide, Type wanted, const Statement& s);
  std::uint32_t result(const Operand& operand, Type wanted, const Statement& s);
  void place_operands(Instruction& made, const Statement& s);
  void add_halves(const Form& form, const Statement& s);
  void place_address(Instruction& made, const Operand& address, std::size_t place,
                     const Statement& s);

  Code& code_;
  Names names_;
};

}  // namespace keel::ptx
