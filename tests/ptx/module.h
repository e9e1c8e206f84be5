// A module of PTX: its functions, whose bodies are not looked into yet, and its variables.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tests/ptx/reader.h"

namespace keel::ptx {

struct Function {
  std::string name;
  bool is_entry = false;
  std::vector<Variable> parameters, results;
  int most_threads = 1024;      // of a block, by .maxntid
  std::span<const Token> body;  // empty where a function is only announced
};

class Module {
 public:
  // Throws Fault, with a line, if the text is not of the PTX that is known.
  explicit Module(std::string text);
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  // Null if there is none of this name.
  const Function* function(const std::string& name) const;
  const Variable* shared(const std::string& name) const;
  // The memory of a global variable, null if there is none of this name.
  std::byte* global(const std::string& name) const;
  const std::map<std::string, Function>& functions() const { return functions_; }
  // Each global variable's memory.
  const std::map<std::string, std::vector<std::byte>>& globals() const { return globals_; }

 private:
  void read_item(Reader& reader);
  void read_function(Reader& reader, bool is_entry);
  void read_limits(Reader& reader, Function& made);

  std::string text_;
  std::vector<Token> tokens_;
  std::map<std::string, Function> functions_;
  std::map<std::string, Variable> shared_;
  mutable std::map<std::string, std::vector<std::byte>> globals_;
};

}  // namespace keel::ptx
