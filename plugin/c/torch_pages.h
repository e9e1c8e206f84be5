// The pages of large results.
#pragma once

#include <cstdint>

#include "plugin/c/keel/norm.h"

namespace keel::plugin::torch {

// Has the system give the memory of a large result that is about to be written, in pages of 2 MiB
// where it can. The C library maps a block of 32 MiB and more again for each result: its pages
// otherwise come one fault of 4 KiB after the other, in the middle of the kernel, whose stores past
// the caches (backends/onednn/streaming.h) then evict what the system has just zeroed. A hint that
// the system does not know has no effect.
void ready_pages(void* address, std::int64_t bytes, const keel_executor& threads);

}  // namespace keel::plugin::torch
