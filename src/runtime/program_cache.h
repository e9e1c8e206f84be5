// Programs of one network for batches of several shapes. They share its variables; each is compiled
// when it is first asked for, and kept.
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

  // With CompileOptions::arena, which others may share, all programs take turns in one block of
  // memory: a fed value or an output is then valid until another program runs. They go on from each
  // other's carries in any case: those of the options or, without any, their own.
  ProgramCache(Backend& backend, Variables& variables, Build build, CompileOptions options = {})
      : backend_(backend),
        variables_(variables),
        build_(std::move(build)),
        options_(std::move(options)) {
    if (options_.carries != nullptr) return;
    carries_ = std::make_unique<Carries>(backend);
    options_.carries = carries_.get();
  }

  // Throws as `build` and the constructor of Program do.
  Program& at(const Sizes& sizes);
  // How many programs were compiled so far.
  std::int64_t size() const { return std::ssize(programs_); }
  // What they hold together.
  ProgramMemory memory() const;
  // Bytes of all blocks of memory that arenas of theirs lie in, each counted once.
  std::int64_t arena_bytes() const;

 private:
  Backend& backend_;
  Variables& variables_;
  Build build_;
  CompileOptions options_;
  std::unique_ptr<Carries> carries_;  // its own; null: those of the options
  std::map<Sizes, std::unique_ptr<Program>> programs_;
};

}  // namespace keel
