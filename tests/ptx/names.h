// The meaning of the names in a function's body, and where it lies.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/ptx/instruction.h"
#include "tests/ptx/module.h"

namespace keel::ptx {

// A register, or a variable with its address in its space.
struct Symbol {
  bool is_register = false;
  Type type = Type::kDouble;
  std::uint32_t place = 0;
  Space space = Space::kNone;
  std::int64_t address = 0;
};

Type type_of_register(const std::string& type, int line);

// Gives registers, constants and variables their places in a kernel.
class Names {
 public:
  Names(const Module& module, Code& code) : module_(module), code_(code) {}

  // Names of a function that is called are not those of its caller.
  void open_function();
  void open() { scopes_.emplace_back(); }
  void close() { scopes_.pop_back(); }
  void set(const std::string& name, Symbol symbol) { scopes_.back()[name] = symbol; }
  std::optional<Symbol> find(const std::string& name);

  std::uint32_t add_register(Type type);
  std::uint32_t constant(Type type, std::uint64_t bits);
  Symbol add_local(const Variable& variable);
  Symbol add_shared(const Variable& variable);
  void add_parameter(const Variable& variable);
  void close_function();

 private:
  std::uint32_t preset(Type type, std::uint64_t bits, const std::string& special);

  const Module& module_;
  Code& code_;
  std::vector<std::map<std::string, Symbol>> scopes_;
  std::vector<std::size_t> functions_;  // the first scope of each
  std::map<std::pair<Type, std::uint64_t>, std::uint32_t> constants_;
  std::map<std::string, Symbol> specials_, shared_;
};

}  // namespace keel::ptx
