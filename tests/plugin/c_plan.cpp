#include "tests/plugin/c_plan.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "frontend/compare/cases/op_case.h"
#include "tests/plugin/emulated_device.h"

namespace keel::test {
namespace {

keel_type to_c(const TensorType& type) {
  if (type.dtype == DType::kF32 && type.shape == Shape{0}) return {KEEL_ABSENT, 0, nullptr};
  return {std::int32_t(type.dtype), std::int32_t(type.shape.rank()), type.shape.sizes().data()};
}

std::vector<TensorType> outputs_of(const keel_plan* plan) {
  std::vector<TensorType> types;
  for (std::int32_t j = 0; j < keel_plan_outputs(plan); ++j) {
    const keel_type type = keel_plan_output(plan, j);
    types.push_back({DType(type.dtype), Shape({type.sizes, std::size_t(type.rank)})});
  }
  return types;
}

std::vector<void*> addresses(const std::vector<DeviceArray>& arrays) {
  std::vector<void*> result;
  for (const DeviceArray& array : arrays) result.push_back(array.address());
  return result;
}

void expect_no_fault(const char* fault) {
  check(fault == nullptr, ErrorKind::kCheckFailed, "{}", fault == nullptr ? "" : fault);
}

}  // namespace

void use_emulated_gpus() {
  const auto program = std::filesystem::read_symlink("/proc/self/exe");
  const auto library = program.parent_path() / "libkeel_norm_cuda_emulated.so";
  setenv("KEEL_NORM_CUDA_LIBRARY", library.c_str(), 0);
}

int prepare(const Asked& asked, CPlan& plan) {
  std::vector<keel_type> types;
  for (const TensorType& type : asked.inputs) types.push_back(to_c(type));
  const keel_request request{asked.op.c_str(), asked.attributes.c_str(), asked.device,
                             std::int32_t(types.size()), types.data()};
  keel_plan* made = nullptr;
  const int status = keel_norm_prepare(&request, &made);
  plan.reset(made);
  return status;
}

void expect_ok(int status) { check(status == KEEL_OK, ErrorKind(status), "{}", keel_error()); }

CPlan prepared(const Asked& asked) {
  CPlan plan;
  expect_ok(prepare(asked, plan));
  return plan;
}

DeviceArray::DeviceArray(keel_device device, std::int64_t bytes) : device_(device) {
  if (device.kind == KEEL_DEVICE_CUDA) {
    memory_ = keel_emulated_allocate(device.index, bytes);
    return;
  }
  memory_ = std::aligned_alloc(kAlignment, std::size_t(aligned_size(bytes) + kAlignment));
  std::memset(memory_, 0xff, std::size_t(bytes));
}

DeviceArray::DeviceArray(keel_device device, const Tensor& from)
    : DeviceArray(device, from.bytes()) {
  write(from);
}

DeviceArray::DeviceArray(DeviceArray&& other) noexcept
    : device_(other.device_), memory_(std::exchange(other.memory_, nullptr)) {}

DeviceArray::~DeviceArray() {
  if (memory_ == nullptr) return;
  device_.kind == KEEL_DEVICE_CUDA ? keel_emulated_release(memory_) : std::free(memory_);
}

Tensor DeviceArray::read(const TensorType& type) const {
  Tensor tensor(type);
  std::memcpy(tensor.data(), memory_, std::size_t(type.bytes()));
  return tensor;
}

void DeviceArray::write(const Tensor& from) {
  std::memcpy(memory_, from.data(), std::size_t(from.bytes()));
}

EmulatedStream::EmulatedStream(keel_device device) : handle_(keel_emulated_stream(device.index)) {}
EmulatedStream::~EmulatedStream() { keel_emulated_free_stream(handle_); }
std::int64_t EmulatedStream::waiting() const { return keel_emulated_waiting(handle_); }
void EmulatedStream::synchronize() { expect_no_fault(keel_emulated_synchronize(handle_)); }
void EmulatedStream::replay() { expect_no_fault(keel_emulated_replay(handle_)); }

CRun::CRun(const Asked& asked, const std::vector<Tensor>& inputs)
    : plan_(prepared(asked)), types_(outputs_of(plan_.get())) {
  for (const Tensor& input : inputs) inputs_.emplace_back(asked.device, input);
  for (const TensorType& type : types_) outputs_.emplace_back(asked.device, type.bytes());
  workspace_.emplace_back(asked.device, keel_plan_workspace(plan_.get()));
}

int CRun::start(void* stream) const {
  const std::vector<void*> from = addresses(inputs_), to = addresses(outputs_);
  const keel_executor executor{nullptr, nullptr, 1, stream};
  return keel_plan_run(plan_.get(), from.data(), to.data(), workspace_[0].address(), &executor);
}

std::vector<Tensor> CRun::outputs() const {
  std::vector<Tensor> result;
  for (std::size_t j = 0; j < types_.size(); ++j) result.push_back(outputs_[j].read(types_[j]));
  return result;
}

Tensor drawn(const Shape& shape, std::uint32_t stream) {
  return compare::random_normal(shape, stream).to(DType::kF32);
}

bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.type() == b.type() && std::memcmp(a.data(), b.data(), std::size_t(a.bytes())) == 0;
}
bool same_bytes(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  return std::ranges::equal(a, b,
                            [](const Tensor& s, const Tensor& t) { return same_bytes(s, t); });
}

std::vector<Tensor> run_once(const Asked& asked, const std::vector<Tensor>& inputs) {
  const CRun run(asked, inputs);
  if (asked.device.kind == KEEL_DEVICE_CPU) {
    expect_ok(run.start());
    return run.outputs();
  }
  EmulatedStream stream(asked.device);
  expect_ok(run.start(stream.handle()));
  stream.synchronize();
  return run.outputs();
}

}  // namespace keel::test
