// A block of the host's memory that can become longer without moving.
#pragma once

#include <memory>

#include "src/runtime/backend.h"

namespace keel {

// Allocates a block and reserves addresses after it: 256 GiB including the block. Only pages that
// are written to take memory. Null if the system refuses the addresses (`ulimit -v`) or the memory.
std::unique_ptr<Memory> allocate_growing_memory(std::int64_t bytes);

}  // namespace keel
