// Plans, memory and streams of keel/norm.h for tests, on the host or on an emulated GPU.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "plugin/c/keel/norm.h"
#include "src/core/tensor.h"

namespace keel::test {

inline constexpr keel_device kHost{KEEL_DEVICE_CPU, 0}, kFirstGpu{KEEL_DEVICE_CUDA, 0},
    kSecondGpu{KEEL_DEVICE_CUDA, 1};

// Has keel/norm.h find its kernels for GPUs in the emulator's library, which lies beside the test
// program. To be called before the first plan on a GPU.
void use_emulated_gpus();

struct FreePlan {
  void operator()(keel_plan* plan) const { keel_plan_free(plan); }
};
using CPlan = std::unique_ptr<keel_plan, FreePlan>;

struct Asked {
  std::string op, attributes;
  std::vector<TensorType> inputs;  // f32 of the shape (0): absent
  keel_device device;
};
// Returns the status, and the plan where it is KEEL_OK.
int prepare(const Asked& asked, CPlan& plan);
// Throws Error with the library's words where it is refused.
CPlan prepared(const Asked& asked);
// Throws Error with the library's words and a status other than KEEL_OK.
void expect_ok(int status);

// Memory of a device between guards, filled with NaN, or with the bytes of a tensor.
class DeviceArray {
 public:
  DeviceArray(keel_device device, std::int64_t bytes);
  DeviceArray(keel_device device, const Tensor& from);
  ~DeviceArray();
  DeviceArray(DeviceArray&& other) noexcept;
  DeviceArray& operator=(DeviceArray&&) = delete;

  void* address() const { return memory_; }
  Tensor read(const TensorType& type) const;
  void write(const Tensor& from);

 private:
  keel_device device_;
  void* memory_ = nullptr;
};

// A stream of an emulated GPU.
class EmulatedStream {
 public:
  explicit EmulatedStream(keel_device device);
  ~EmulatedStream();
  EmulatedStream(const EmulatedStream&) = delete;
  EmulatedStream& operator=(const EmulatedStream&) = delete;

  void* handle() const { return handle_; }
  std::int64_t waiting() const;
  // Do the work that waits, once or, as a captured graph, to be done again. Throw Error with what
  // the emulator found.
  void synchronize();
  void replay();

 private:
  void* handle_;
};

// A plan with arrays of its own on its device.
class CRun {
 public:
  // `inputs` as in `asked`; those of absent ones are not read.
  CRun(const Asked& asked, const std::vector<Tensor>& inputs);

  // Returns the status. `stream` is for GPUs.
  int start(void* stream = nullptr) const;
  std::vector<Tensor> outputs() const;
  void write_input(int place, const Tensor& from) { inputs_[std::size_t(place)].write(from); }
  keel_plan* plan() const { return plan_.get(); }

 private:
  CPlan plan_;
  std::vector<DeviceArray> inputs_, outputs_, workspace_;
  std::vector<TensorType> types_;  // of the outputs
};

// Normal numbers of float32, keyed by `stream`.
Tensor drawn(const Shape& shape, std::uint32_t stream);
// Tensors as a list, which takes them over.
template <class... Tensors>
std::vector<Tensor> list_of(Tensors... tensors) {
  std::vector<Tensor> list;
  (list.push_back(std::move(tensors)), ...);
  return list;
}
bool same_bytes(const Tensor& a, const Tensor& b);
bool same_bytes(const std::vector<Tensor>& a, const std::vector<Tensor>& b);

// The outputs of a run on the calling thread or, on a GPU, on a stream.
std::vector<Tensor> run_once(const Asked& asked, const std::vector<Tensor>& inputs);

}  // namespace keel::test
