#include "tests/plugin/c_backend.h"

#include <cstring>

#include "src/ops/norm/norm_ops.h"

namespace keel::test {
namespace {

class EmulatedMemory : public Memory {
 public:
  EmulatedMemory(int device, std::int64_t bytes)
      : bytes_(bytes), memory_({KEEL_DEVICE_CUDA, device}, bytes) {
    std::memset(memory_.address(), 0, std::size_t(bytes));
  }
  std::byte* address() const override { return static_cast<std::byte*>(memory_.address()); }
  std::int64_t bytes() const override { return bytes_; }
  void upload(std::int64_t offset, const void* src, std::int64_t bytes) override {
    std::memcpy(address() + offset, src, std::size_t(bytes));
  }
  void download(std::int64_t offset, void* dst, std::int64_t bytes) const override {
    std::memcpy(dst, address() + offset, std::size_t(bytes));
  }

 private:
  std::int64_t bytes_;
  DeviceArray memory_;
};

Asked asked_of(const NodeContext& context, int device) {
  Asked asked{
      context.node.op->name.data(), context.node.attrs.text(), {}, {KEEL_DEVICE_CUDA, device}};
  for (int i = 0; i < int(context.node.inputs.size()); ++i) {
    asked.inputs.push_back(context.has(i) ? context.input(i) : TensorType{DType::kF32, Shape{0}});
  }
  return asked;
}

// Runs a plan on a stream of its own, and waits.
struct RunPlan {
  std::shared_ptr<keel_plan> plan;
  int device;
  std::shared_ptr<std::int64_t> runs;

  void operator()(const Binding& b) const {
    std::vector<void*> from, to;
    for (const TensorRef& input : b.inputs) from.push_back(input.data);
    for (const TensorRef& output : b.outputs) to.push_back(output.data);
    EmulatedStream stream({KEEL_DEVICE_CUDA, device});
    const keel_executor executor{nullptr, nullptr, 0, stream.handle()};
    expect_ok(keel_plan_run(plan.get(), from.data(), to.data(), b.workspace, &executor));
    stream.synchronize();
    ++*runs;
  }
};

}  // namespace

Prepared CBackend::prepare(const NodeContext& context) {
  bool is_norm = false;
  for (const OpInfo* op : norm_ops()) is_norm = is_norm || op == context.node.op;
  if (!is_norm) return others_.prepare(context);
  const std::shared_ptr<keel_plan> plan = prepared(asked_of(context, device_));
  return kernel_of(RunPlan{plan, device_, runs_}, keel_plan_workspace(plan.get()));
}

std::unique_ptr<Memory> CBackend::allocate(std::int64_t bytes) {
  return std::make_unique<EmulatedMemory>(device_, bytes);
}

}  // namespace keel::test
