// The function of libtorch_cuda.so: the current stream of each GPU.
#include "tests/plugin/fake_torch/fake_torch.h"

namespace {

void* streams[2] = {};

}  // namespace

void fake_torch_set_stream(std::int32_t index, void* stream) { streams[index] = stream; }

extern "C" KEEL_API std::int32_t aoti_torch_get_current_cuda_stream(std::int32_t device,
                                                                    void** stream) {
  if (device < 0 || device > 1) return 1;
  *stream = streams[device];
  return 0;
}
