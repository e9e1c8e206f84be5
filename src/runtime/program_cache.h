// Programs of one network for batches of several shapes. They share its variables. Each program is
// compiled when its shape is first asked for, and then kept.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "src/runtime/program.h"

namespace keel {

class ProgramCache {
 public:
  using Sizes = std::vector<std::int64_t>;  // what the shapes depend on
  using Build = std::function<Graph(const Sizes&)>;

  // With CompileOptions::arena, which other caches may share, all programs take turns in one block
  // of memory; a fed value or an output is then valid until another program runs. All programs
  // share one set of carries: the one given in the options, or else the cache's own.
  ProgramCache(Backend& backend, Variables& variables, Build build, CompileOptions options = {})
      : backend_(backend),
        variables_(variables),
        build_(std::move(build)),
        options_(std::move(options)) {
    if (options_.carries != nullptr) return;
    carries_ = std::make_unique<Carries>(backend);
    options_.carries = carries_.get();
  }

  // Throws whatever `build` and the constructor of Program throw.
  Program& at(const Sizes& sizes);
  // The number of programs compiled so far.
  std::int64_t size() const { return std::ssize(programs_); }
  // The memory that all programs hold together.
  ProgramMemory memory() const;
  // The total size in bytes of the distinct memory blocks that the programs' arenas lie in.
  std::int64_t arena_bytes() const;

 private:
  Backend& backend_;
  Variables& variables_;
  Build build_;
  CompileOptions options_;
  std::unique_ptr<Carries> carries_;  // owned by the cache; null if the options bring some
  std::map<Sizes, std::unique_ptr<Program>> programs_;
};

}  // namespace keel
