// GPUs of the emulator, for programs that load libkeel_norm_cuda_emulated.so: their memory and
// streams, as CUDA's runtime would give them.
#pragma once

#include <cstdint>

#include "plugin/c/keel/norm.h"

extern "C" {
// Memory of a GPU between two strips that kernels may not write to. It is filled with NaN.
KEEL_API void* keel_emulated_allocate(std::int32_t device, std::int64_t bytes);
KEEL_API void keel_emulated_release(void* memory);
// A stream, whose work is done when it is waited for.
KEEL_API void* keel_emulated_stream(std::int32_t device);
KEEL_API void keel_emulated_free_stream(void* stream);
// How many kernels wait in a stream.
KEEL_API std::int64_t keel_emulated_waiting(void* stream);
// Does the work of a stream. Returns what the emulator found wrong, nullptr if nothing; the text
// stays valid until this thread's next call.
KEEL_API const char* keel_emulated_synchronize(void* stream);
// Does the work of a stream, which also stays in it: a captured graph is launched so.
KEEL_API const char* keel_emulated_replay(void* stream);
}
