// A PyTorch of the functions that libkeel_norm_torch.so calls, for a test of what it does with
// tensors on GPUs where there is none: GPUs are those of the emulator. torch_abi_check.cpp holds
// the types of the functions to PyTorch's own.
#pragma once

#include "plugin/c/keel/norm.h"
#include "plugin/c/torch_abi.h"

namespace keel::test {

namespace torch = plugin::torch;

// Its numbers of types of devices and of elements.
inline constexpr std::int32_t kFakeCpu = 0, kFakeCuda = 1, kFakeFloat = 6, kFakeDouble = 7;

struct FakeForm {
  std::int32_t device, index;  // type and number
  std::int32_t dtype = kFakeFloat;
  std::int64_t rows, columns;
  std::int64_t first = 0;  // elements before it in its memory
};

}  // namespace keel::test

extern "C" {
// A tensor (rows, columns), filled with NaN.
KEEL_API keel::plugin::torch::Handle fake_torch_tensor(const keel::test::FakeForm* form);
// A text as an argument of a kernel.
KEEL_API keel::plugin::torch::Value fake_torch_text(const char* text);
// The kernel that was entered for a kind of devices, or nullptr.
KEEL_API keel::plugin::torch::BoxedKernel fake_torch_kernel(const char* devices, const char* name);
// The current stream of a GPU.
KEEL_API void fake_torch_set_stream(std::int32_t index, void* stream);
// How many tensors there are, and copies were made.
KEEL_API std::int64_t fake_torch_living();
KEEL_API std::int64_t fake_torch_copies();
}
