#include "src/runtime/program_cache.h"

namespace keel {

Program& ProgramCache::at(const Sizes& sizes) {
  std::unique_ptr<Program>& program = programs_[sizes];
  if (!program) {
    program = std::make_unique<Program>(backend_, variables_, build_(sizes), options_);
  }
  return *program;
}

}  // namespace keel
