#include "tests/ptx/cuda/kernels.h"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>

#include "tests/ptx/cuda/fatbin.h"
#include "tests/ptx/cuda/ptxas.h"
#include "tests/ptx/fault.h"

namespace keel::ptx {
namespace {

// nvcc gives the anonymous namespace of every compilation another number.
std::string without_numbers(const std::string& name) {
  static const std::regex pattern("_GLOBAL__N__[0-9a-f]{8}_([0-9]+_[A-Za-z0-9_]*?_cu)_[0-9a-f]{8}");
  return std::regex_replace(name, pattern, "_GLOBAL__N__$1");
}

// Adds a kernel that is run for the first time to the file that KEEL_PTX_USED names, of which
// tests/ptx/check_cuda.py counts what was never run.
void note_use(const std::string& name) {
  if (const char* const path = std::getenv("KEEL_PTX_USED")) {
    std::ofstream(path, std::ios::app) << name << '\n';
  }
}

// The layout of what __cudaRegisterFatBinary is given.
struct Wrapper {
  int magic, version;
  const void* fatbin;
  void* unused;
};

}  // namespace

void** Kernels::add_binary(const void* wrapper) {
  binaries_.push_back({static_cast<const Wrapper*>(wrapper)->fatbin, nullptr});
  return reinterpret_cast<void**>(&binaries_.back());
}

void Kernels::add_function(void** binary, const void* host, const char* name) {
  kernels_[host] = {reinterpret_cast<Binary*>(binary), name, nullptr};
}

std::unique_ptr<Module> Kernels::make_module(std::string text) {
  auto made = std::make_unique<Module>(std::move(text));
  for (const auto& [name, memory] : made->globals()) {
    memory_.add(const_cast<std::byte*>(memory.data()), std::int64_t(memory.size()));
  }
  return made;
}

// Files named in KEEL_PTX_REPLACE, divided by colons: their kernels take the place of those of the
// same name, for tests that plant faults.
void Kernels::read_replacements() {
  has_replacements_ = true;
  const char* const files = std::getenv("KEEL_PTX_REPLACE");
  std::istringstream paths(files ? files : "");
  for (std::string path; std::getline(paths, path, ':');) {
    std::ifstream file(path);
    if (!file) fail("{} cannot be read", path);
    replacements_.push_back(
        make_module({std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()}));
    for (const auto& [name, function] : replacements_.back()->functions()) {
      if (function.is_entry) replaced_[without_numbers(name)] = {replacements_.back().get(), name};
    }
  }
}

// The module that holds a kernel; a replacement changes the kernel's name, too.
const Module& Kernels::module_of(Kernel& kernel) {
  if (!has_replacements_) read_replacements();
  if (!replaced_.empty()) {
    const auto at = replaced_.find(without_numbers(kernel.name));
    if (at != replaced_.end()) {
      kernel.name = at->second.second;
      return *at->second.first;
    }
  }
  Binary& binary = *kernel.binary;
  if (!binary.module) binary.module = make_module(text_of_fatbin(binary.fatbin));
  return *binary.module;
}

// With KEEL_PTX_DECODE=all, as a check that no kernel has an instruction that is not known, those
// that are never launched included.
void Kernels::decode_all() {
  has_decoded_all_ = true;
  const char* const which = std::getenv("KEEL_PTX_DECODE");
  if (!which || std::strcmp(which, "all") != 0) return;
  for (auto& [host, kernel] : kernels_) {
    try {
      decode(module_of(kernel), kernel.name);
    } catch (const Fault& fault) {
      fail("kernel {}: {}", kernel.name, fault.what());
    }
  }
}

const Code& Kernels::code(const void* host) {
  if (!has_decoded_all_) decode_all();
  const auto at = kernels_.find(host);
  if (at == kernels_.end()) fail("a launch of a function that nvcc did not register");
  Kernel& kernel = at->second;
  if (!kernel.code) {
    const std::string registered = kernel.name;
    const Module& module = module_of(kernel);
    kernel.code = std::make_unique<Code>(decode(module, kernel.name));
    kernel.code->registers = registers_by_ptxas(registered);
    note_use(registered);
  }
  return *kernel.code;
}

}  // namespace keel::ptx
