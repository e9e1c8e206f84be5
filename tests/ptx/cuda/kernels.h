// The kernels of a program that nvcc compiled, found by the addresses that launches name.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tests/ptx/block.h"
#include "tests/ptx/decode.h"

namespace keel::ptx {

class Kernels {
 public:
  // The objects that nvcc's code registers before main(): binaries, and in each the names of host
  // functions.
  void** add_binary(const void* fatbin);
  void add_function(void** binary, const void* host, const char* name);

  // The kernel of a host function, decoded when it is first asked for. Throws Fault.
  const Code& code(const void* host);
  // The global variables of all modules that were read.
  Memory& memory() { return memory_; }

 private:
  struct Binary {
    const void* fatbin;
    std::unique_ptr<Module> module;
  };
  struct Kernel {
    Binary* binary;
    std::string name;
    std::unique_ptr<Code> code;
  };
  void read_replacements();
  void decode_all();
  const Module& module_of(Kernel& kernel);
  std::unique_ptr<Module> make_module(std::string text);

  std::deque<Binary> binaries_;
  std::unordered_map<const void*, Kernel> kernels_;
  Memory memory_;
  bool has_replacements_ = false, has_decoded_all_ = false;
  std::vector<std::unique_ptr<Module>> replacements_;
  // By the name without what differs from one compilation to the next.
  std::map<std::string, std::pair<const Module*, std::string>> replaced_;
};

}  // namespace keel::ptx
