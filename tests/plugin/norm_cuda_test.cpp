// keel/norm.h on GPUs, which the emulator stands for: the library loads its kernels as it loads
// those of nvcc, and is given device memory and streams. Tests of plugin/python run the real ones
// where there is a GPU.
#include <doctest/doctest.h>

#include <cstring>
#include <thread>

#include "src/core/rng.h"
#include "src/ops/norm/norm_ops.h"
#include "tests/frontend/compare/helpers.h"
#include "tests/plugin/c_backend.h"

namespace keel::test {
namespace {

// A GPU and a judge; the library of the emulator is named before any plan is asked for.
struct Gpu {
  Gpu() { use_emulated_gpus(); }
  std::unique_ptr<Backend> judge = make_backend("reference"), host = make_backend("onednn");
  CBackend backend{1, *host};

  compare::Comparison compare(compare::Subject& subject, std::int64_t steps) {
    return compare::compare(*judge, {&backend}, subject, {.walk = {}, .steps = steps});
  }
};

// A layer norm of 5 rows with gain and bias.
const Asked kLayerNorm{"layer_norm",
                       "eps=1e-06",
                       {{DType::kF32, {5, 36}}, {DType::kF32, {36}}, {DType::kF32, {36}}},
                       kFirstGpu};
std::vector<Tensor> layer_norm_inputs(std::uint32_t stream) {
  return list_of(drawn({5, 36}, stream), drawn({36}, stream + 1), drawn({36}, stream + 2));
}

// The backward of one of 40 rows, on the second GPU.
const Asked kBackward{"layer_norm_backward",
                      "eps=1e-06 wants_dbias=true",
                      {{DType::kF32, {40, 36}},
                       {DType::kF32, {36}},
                       {DType::kF32, {40}},
                       {DType::kF32, {40}},
                       {DType::kF32, {40, 36}}},
                      kSecondGpu};

Asked on(const keel_device& device, Asked asked) {
  asked.device = device;
  return asked;
}

bool is_untouched(const std::vector<Tensor>& tensors) {
  return std::ranges::all_of(tensors, [](const Tensor& t) {
    return std::all_of(t.data(), t.data() + t.bytes(),
                       [](std::byte byte) { return byte == std::byte{0xff}; });
  });
}

// The library's message where a call fails with that status.
std::string words(int expected, int status) {
  CHECK(status == expected);
  return keel_error();
}

TEST_CASE("norm.h on a GPU: every norm agrees with the judge, forward, backward and state" *
          doctest::test_suite("slow")) {
  Gpu gpu;
  for (const nn::NormFacts& facts : nn::norm_facts()) {
    CAPTURE(facts.name);
    const std::int64_t before = gpu.backend.runs();
    for (const auto& subject : compare::norm_subjects(nn::Norm::parse(facts.any_width()))) {
      const compare::Comparison c = gpu.compare(*subject, 2);
      check_agrees(c);
      CHECK(c.refused() == 0);
    }
    if (facts.name != "none") CHECK(gpu.backend.runs() > before);
  }
}

TEST_CASE("norm.h on a GPU: the statistics of columns agree with the judge") {
  Gpu gpu;
  for (const char* op : {"column_moments", "column_squares", "merge_moments", "merge_sums",
                         "centred_gradient_sums", "uncentred_gradient_sums"}) {
    CAPTURE(op);
    const std::int64_t before = gpu.backend.runs();
    for (const auto& subject : compare::op_subjects(op)) {
      const compare::Comparison c = gpu.compare(*subject, 1);
      check_agrees(c);
      CHECK(c.refused() == 0);
    }
    CHECK(gpu.backend.runs() > before);
  }
}

TEST_CASE("norm.h on a GPU: it takes every op of the list, and gives the outputs of the host") {
  use_emulated_gpus();
  const TensorType x{DType::kF32, {4, 12}};
  for (const OpInfo* op : norm_ops()) {
    CAPTURE(op->name);
    const Asked asked{std::string(op->name), "", {x}, kHost};
    CPlan host, gpu;
    // The GPU refuses a request in the same words in which the host refuses it for its types.
    const int status = prepare(asked, host);
    const std::string text = status == KEEL_OK ? "" : keel_error();
    CHECK(prepare(on(kFirstGpu, asked), gpu) == status);
    CHECK((status == KEEL_OK ? "" : std::string(keel_error())) == text);
    CHECK(keel_plan_outputs(host.get()) == keel_plan_outputs(gpu.get()));
  }
}

TEST_CASE("norm.h on a GPU: a run leaves its work on the stream that it is given") {
  use_emulated_gpus();
  EmulatedStream first(kFirstGpu), second(kFirstGpu);
  const CRun a(kLayerNorm, layer_norm_inputs(1)), b(kLayerNorm, layer_norm_inputs(9));
  REQUIRE(a.start(first.handle()) == KEEL_OK);
  REQUIRE(b.start(second.handle()) == KEEL_OK);
  CHECK(first.waiting() == 1);
  CHECK(is_untouched(a.outputs()));
  second.synchronize();
  CHECK(is_untouched(a.outputs()));
  CHECK(same_bytes(b.outputs(), run_once(kLayerNorm, layer_norm_inputs(9))));
  first.synchronize();
  CHECK(same_bytes(a.outputs(), run_once(kLayerNorm, layer_norm_inputs(1))));
  CHECK(!same_bytes(a.outputs(), b.outputs()));
}

TEST_CASE("norm.h on a GPU: without an executor the work goes to the default stream") {
  use_emulated_gpus();
  const std::vector<Tensor> inputs = layer_norm_inputs(1);
  const CRun run(kLayerNorm, inputs);
  REQUIRE(run.start(nullptr) == KEEL_OK);
  CHECK(same_bytes(run.outputs(), run_once(kLayerNorm, inputs)));
}

TEST_CASE("norm.h on the host: an executor with a stream alone is the calling thread") {
  const TensorType x{DType::kF32, {600, 64}};
  const CPlan plan = prepared({"rms_norm", "", {x}, kHost});
  const DeviceArray from(kHost, drawn(x.shape, 1)), y(kHost, x.bytes()), rstd(kHost, 600 * 4);
  const void* inputs[] = {from.address()};
  void* outputs[] = {y.address(), rstd.address()};
  int of_gpu = 0;
  const keel_executor executor{nullptr, nullptr, 0, &of_gpu};
  REQUIRE(keel_plan_run(plan.get(), inputs, outputs, nullptr, &executor) == KEEL_OK);
  CHECK(
      same_bytes(y.read(x), run_once({"rms_norm", "", {x}, kHost}, list_of(drawn(x.shape, 1)))[0]));
}

TEST_CASE("norm.h on a GPU: what a stream recorded gives new results for new numbers") {
  use_emulated_gpus();
  EmulatedStream stream(kFirstGpu);
  CRun run(kLayerNorm, layer_norm_inputs(1));
  REQUIRE(run.start(stream.handle()) == KEEL_OK);
  for (std::uint32_t seed : {5u, 6u}) {
    std::vector<Tensor> inputs = layer_norm_inputs(1);
    inputs[0] = drawn({5, 36}, seed);
    run.write_input(0, inputs[0]);
    stream.replay();
    CHECK(same_bytes(run.outputs(), run_once(kLayerNorm, inputs)));
  }
}

TEST_CASE("norm.h on a GPU: threads run one plan at once, each on its stream") {
  use_emulated_gpus();
  const std::vector<Tensor> inputs = list_of(drawn({40, 36}, 1), drawn({36}, 2), drawn({40}, 3),
                                             drawn({40}, 4), drawn({40, 36}, 5));
  const std::vector<Tensor> expected = run_once(kBackward, inputs);
  std::vector<int> right(4);
  std::vector<std::thread> threads;
  for (int& count : right) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5; ++i) count += same_bytes(run_once(kBackward, inputs), expected);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(right == std::vector<int>{5, 5, 5, 5});
}

TEST_CASE("norm.h on a GPU: each thread has the words of its own error") {
  use_emulated_gpus();
  CPlan plan;
  CHECK(prepare(on({KEEL_DEVICE_CUDA, 7}, kLayerNorm), plan) == KEEL_UNSUPPORTED);
  const std::string own = keel_error();
  std::thread([] {
    CPlan other;
    CHECK(prepare(on({3, 0}, kLayerNorm), other) == KEEL_USAGE);
  }).join();
  CHECK(own == keel_error());
}

TEST_CASE("norm.h on a GPU: what it does not have it refuses by name") {
  use_emulated_gpus();
  CPlan plan;
  CHECK(words(KEEL_UNSUPPORTED, prepare(on({KEEL_DEVICE_CUDA, 2}, kLayerNorm), plan)) ==
        "device: expected one of the 2 that CUDA counts, from 0 on, got 2");
  CHECK(words(KEEL_UNSUPPORTED, prepare(on({KEEL_DEVICE_CUDA, -1}, kLayerNorm), plan)) ==
        "device: expected one of the 2 that CUDA counts, from 0 on, got -1");
  CHECK(words(KEEL_USAGE, prepare(on({2, 0}, kLayerNorm), plan)) ==
        "device: expected a kind of enum keel_device_kind, got 2");
  Asked wide = kLayerNorm;
  for (TensorType& type : wide.inputs) type.dtype = DType::kF64;
  CHECK(words(KEEL_UNSUPPORTED, prepare(wide, plan)) ==
        "[layer_norm] x: the kernel of cuda takes f32 or bf16, got f64");
  CHECK(plan == nullptr);
}

// Runs kLayerNorm with one address replaced.
struct Addresses {
  CPlan plan = prepared(kLayerNorm);
  DeviceArray x{kFirstGpu, 800}, gain{kFirstGpu, 256}, bias{kFirstGpu, 256}, y{kFirstGpu, 800},
      mean{kFirstGpu, 64}, rstd{kFirstGpu, 64};
  const void* inputs[3] = {x.address(), gain.address(), bias.address()};
  void* outputs[3] = {y.address(), mean.address(), rstd.address()};

  int run() const { return keel_plan_run(plan.get(), inputs, outputs, nullptr, nullptr); }
};

TEST_CASE("norm.h on a GPU: arrays elsewhere are refused before anything runs") {
  use_emulated_gpus();
  Addresses a;
  REQUIRE(a.run() == KEEL_OK);
  alignas(64) float of_host[200] = {};
  a.inputs[0] = of_host;
  CHECK(words(KEEL_USAGE, a.run()) ==
        "[layer_norm] x: expected an address of device 0, got one that CUDA does not know");
  a.inputs[0] = a.x.address();
  const DeviceArray other(kSecondGpu, 800);
  a.outputs[0] = other.address();
  CHECK(words(KEEL_USAGE, a.run()) ==
        "[layer_norm] output 0: expected an address of device 0, got one of device 1");
  a.outputs[0] = static_cast<float*>(a.y.address()) + 1;
  CHECK(words(KEEL_USAGE, a.run()) ==
        "[layer_norm] output 0: expected an address that is a multiple of 16 bytes");
  a.outputs[0] = nullptr;
  CHECK(words(KEEL_USAGE, a.run()) ==
        "[layer_norm] output 0: expected an array f32(5, 36), got no address");
}

TEST_CASE("norm.h on a GPU: a workspace of the host is refused") {
  use_emulated_gpus();
  const CPlan plan = prepared(kBackward);
  const std::int64_t bytes = keel_plan_workspace(plan.get());
  REQUIRE(bytes > 0);
  const DeviceArray of_host(kHost, bytes);
  std::vector<DeviceArray> arrays;
  std::vector<void*> addresses;
  for (int i = 0; i < 8; ++i) {
    addresses.push_back(arrays.emplace_back(kSecondGpu, 40 * 36 * 4).address());
  }
  CHECK(words(KEEL_USAGE, keel_plan_run(plan.get(), addresses.data(), addresses.data() + 5,
                                        of_host.address(), nullptr)) ==
        "[layer_norm_backward] workspace: expected an address of device 1, got one that CUDA does "
        "not know");
}

TEST_CASE("norm.h on a GPU: what CUDA refuses is a status, with its words") {
  use_emulated_gpus();
  EmulatedStream of_other(kSecondGpu);
  const CRun run(kLayerNorm, layer_norm_inputs(1));
  CHECK(words(KEEL_CUDA_FAILED, run.start(of_other.handle())) ==
        "[emulator] a kernel of device 0 on a stream of device 1");
  CHECK(of_other.waiting() == 0);
}

TEST_CASE("norm.h on a GPU: an empty batch starts nothing") {
  use_emulated_gpus();
  Asked asked = kLayerNorm;
  asked.inputs[0].shape = Shape{0, 36};
  EmulatedStream stream(kFirstGpu);
  const CRun run(asked, list_of(Tensor(asked.inputs[0]), drawn({36}, 1), drawn({36}, 2)));
  CHECK(run.start(stream.handle()) == KEEL_OK);
  stream.synchronize();
}

}  // namespace
}  // namespace keel::test
