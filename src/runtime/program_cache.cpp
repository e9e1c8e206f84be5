#include "src/runtime/program_cache.h"

#include <set>

namespace keel {

Program& ProgramCache::at(const Sizes& sizes) {
  std::unique_ptr<Program>& program = programs_[sizes];
  if (!program) {
    program = std::make_unique<Program>(backend_, variables_, build_(sizes), options_);
  }
  return *program;
}

ProgramMemory ProgramCache::memory() const {
  ProgramMemory sum;
  for (const auto& [sizes, program] : programs_) sum += program->memory();
  return sum;
}

std::int64_t ProgramCache::arena_bytes() const {
  std::set<const Memory*> blocks;
  for (const auto& [sizes, program] : programs_) blocks.insert(&program->arena());
  std::int64_t bytes = 0;
  for (const Memory* block : blocks) bytes += block->bytes();
  return bytes;
}

}  // namespace keel
