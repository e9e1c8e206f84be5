// A block of the host's memory that can become longer without moving.
#pragma once

#include <memory>

#include "src/runtime/backend.h"

namespace keel {

// A block with addresses set aside after it, 256 GiB with its own. Only pages that are written to
// take memory. Null where the system refuses the addresses (`ulimit -v` for example) or the memory.
std::unique_ptr<Memory> allocate_growing_memory(std::int64_t bytes);

}  // namespace keel
