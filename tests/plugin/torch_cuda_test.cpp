// The kernels for PyTorch on GPUs, over a PyTorch of the few functions that they call and over the
// emulator's GPUs. plugin/python/tests/test_cuda.py has a real PyTorch and a GPU.
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <thread>

#include "tests/plugin/c_plan.h"
#include "tests/plugin/fake_torch/fake_torch.h"

namespace keel::test {
namespace {

// A library of this build, loaded by its path.
void* load(const char* below, int scope) {
  const auto program = std::filesystem::read_symlink("/proc/self/exe");
  void* library = dlopen((program.parent_path() / below).c_str(), RTLD_NOW | scope);
  check(library != nullptr, ErrorKind::kIo, "{}", library == nullptr ? dlerror() : "");
  return library;
}

template <class Function>
Function* find(void* library, const char* name) {
  void* found = dlsym(library, name);
  check(found != nullptr, ErrorKind::kIo, "no {}", name);
  return reinterpret_cast<Function*>(found);
}

// The functions of fake_torch.h, after keel's kernels have been entered.
struct FakeTorch {
  decltype(fake_torch_tensor)* tensor;
  decltype(fake_torch_text)* text;
  decltype(fake_torch_kernel)* kernel;
  decltype(fake_torch_living)* living;
  decltype(fake_torch_copies)* copies;
  decltype(fake_torch_set_stream)* set_stream;
  std::int32_t (*data)(torch::Handle, void**);
  std::int32_t (*drop)(torch::Handle);
  std::int32_t (*device)(torch::Handle, std::int32_t*);
  std::int32_t (*index)(torch::Handle, std::int32_t*);

  FakeTorch() {
    use_emulated_gpus();
    void* cpu = load("plugin/fake_torch/libtorch_cpu.so", RTLD_LOCAL);
    void* cuda = load("plugin/fake_torch/libtorch_cuda.so", RTLD_LOCAL);
    tensor = find<decltype(fake_torch_tensor)>(cpu, "fake_torch_tensor");
    text = find<decltype(fake_torch_text)>(cpu, "fake_torch_text");
    kernel = find<decltype(fake_torch_kernel)>(cpu, "fake_torch_kernel");
    living = find<decltype(fake_torch_living)>(cpu, "fake_torch_living");
    copies = find<decltype(fake_torch_copies)>(cpu, "fake_torch_copies");
    set_stream = find<decltype(fake_torch_set_stream)>(cuda, "fake_torch_set_stream");
    data = find<std::int32_t(torch::Handle, void**)>(cpu, "torch_get_mutable_data_ptr");
    drop = find<std::int32_t(torch::Handle)>(cpu, "aoti_torch_delete_tensor_object");
    device = find<std::int32_t(torch::Handle, std::int32_t*)>(cpu, "aoti_torch_get_device_type");
    index = find<std::int32_t(torch::Handle, std::int32_t*)>(cpu, "aoti_torch_get_device_index");
    void* shim = load("../plugin/c/libkeel_norm_torch.so", RTLD_LOCAL);
    const char* names[] = {"rms_norm", "rms_norm_backward"};
    const char* failure =
        find<const char*(const char* const*, std::int32_t)>(shim, "keel_norm_torch")(names, 2);
    check(failure == nullptr, ErrorKind::kIo, "{}", failure == nullptr ? "" : failure);
  }
};

const FakeTorch& fake() {
  static const FakeTorch loaded;
  return loaded;
}

torch::Handle tensor_of(const FakeForm& form, const Tensor& values) {
  const torch::Handle made = fake().tensor(&form);
  void* data = nullptr;
  fake().data(made, &data);
  std::memcpy(data, values.data(), std::size_t(values.bytes()));
  return made;
}

// Calls rms_norm(x, no gain) by the kernel for GPUs, which takes x over. Gives y and rstd.
std::array<torch::Handle, 2> rms_norm(torch::Handle x, torch::Handle gain = nullptr) {
  using Value = torch::Value;
  Value* held = gain == nullptr ? nullptr : new Value(reinterpret_cast<Value>(gain));
  Value stack[] = {reinterpret_cast<Value>(x), reinterpret_cast<Value>(held),
                   fake().text("eps=1e-05")};
  fake().kernel("CUDA", "rms_norm")(stack, 3, 2);
  return {reinterpret_cast<torch::Handle>(stack[0]), reinterpret_cast<torch::Handle>(stack[1])};
}

Tensor read(torch::Handle from, const TensorType& type) {
  void* data = nullptr;
  fake().data(from, &data);
  Tensor tensor(type);
  std::memcpy(tensor.data(), data, std::size_t(type.bytes()));
  return tensor;
}

void drop(const std::array<torch::Handle, 2>& tensors) {
  for (const torch::Handle tensor : tensors) fake().drop(tensor);
}

const TensorType kX{DType::kF32, {6, 20}};
FakeForm on_gpu(int index) {
  return {.device = kFakeCuda, .index = index, .rows = 6, .columns = 20};
}

Tensor drawn_x() { return drawn(kX.shape, 3); }
Tensor expected_of(const Tensor& x) {
  return std::move(run_once({"rms_norm", "eps=1e-05", {kX}, kFirstGpu}, list_of(x.clone()))[0]);
}

TEST_CASE("norms for PyTorch on a GPU: kernels are entered for both kinds of devices") {
  for (const char* devices : {"CPU", "CUDA"}) {
    CHECK(bool(fake().kernel(devices, "rms_norm")));
    CHECK(bool(fake().kernel(devices, "rms_norm_backward")));
  }
  CHECK(bool(fake().kernel("CPU", "commit")));
}

TEST_CASE("norms for PyTorch on a GPU: the current stream of the tensor's GPU has the work") {
  const std::int64_t before = fake().living();
  EmulatedStream first(kFirstGpu), second(kSecondGpu);
  fake().set_stream(0, first.handle());
  fake().set_stream(1, second.handle());
  const Tensor x = drawn_x();
  const auto outputs = rms_norm(tensor_of(on_gpu(1), x));
  CHECK(first.waiting() == 0);
  CHECK(second.waiting() == 1);
  for (const torch::Handle output : outputs) {
    std::int32_t device = -1, index = -1;
    fake().device(output, &device);
    fake().index(output, &index);
    CHECK(device == kFakeCuda);
    CHECK(index == 1);
  }
  // PyTorch keeps the memory of x for the stream; the emulator has given it back.
  drop(outputs);
  CHECK(fake().living() == before);
}

TEST_CASE("norms for PyTorch on a GPU: the numbers are those of the C interface") {
  fake().set_stream(0, nullptr);  // the default stream, whose work is done at once
  const Tensor x = drawn_x();
  const auto outputs = rms_norm(tensor_of(on_gpu(0), x));
  CHECK(same_bytes(read(outputs[0], kX), expected_of(x)));
  drop(outputs);
}

TEST_CASE("norms for PyTorch on a GPU: a tensor that begins anywhere is copied first") {
  fake().set_stream(0, nullptr);
  const Tensor x = drawn_x();
  const std::int64_t copies = fake().copies();
  FakeForm form = on_gpu(0);
  form.first = 1;  // 4 bytes
  const auto outputs = rms_norm(tensor_of(form, x));
  CHECK(fake().copies() == copies + 1);
  CHECK(same_bytes(read(outputs[0], kX), expected_of(x)));
  drop(outputs);
  form.first = 4;
  drop(rms_norm(tensor_of(form, x)));
  CHECK(fake().copies() == copies + 1);
}

std::string refusal(torch::Handle x, torch::Handle gain = nullptr) {
  try {
    drop(rms_norm(x, gain));
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

TEST_CASE("norms for PyTorch on a GPU: refusals say what was expected, and keep nothing") {
  const std::int64_t before = fake().living();
  FakeForm gain = on_gpu(1);
  CHECK(refusal(fake().tensor(&gain), tensor_of(on_gpu(0), drawn_x())) ==
        "[rms_norm] expected all tensors on one device, got cuda:1 and cuda:0");
  gain.device = kFakeCpu;
  CHECK(refusal(tensor_of(on_gpu(0), drawn_x()), fake().tensor(&gain)) ==
        "[rms_norm] expected all tensors on one device, got cuda:0 and cpu");
  FakeForm wide = on_gpu(0);
  wide.dtype = kFakeDouble;
  CHECK(refusal(fake().tensor(&wide)) ==
        "[rms_norm] x: the kernel of cuda takes f32 or bf16, got f64");
  CHECK(fake().living() == before);
}

TEST_CASE("norms for PyTorch on a GPU: a stream of another GPU is an error") {
  EmulatedStream of_second(kSecondGpu);
  fake().set_stream(0, of_second.handle());
  CHECK(refusal(tensor_of(on_gpu(0), drawn_x())) ==
        "[emulator] a kernel of device 0 on a stream of device 1");
  fake().set_stream(0, nullptr);
}

}  // namespace
}  // namespace keel::test
