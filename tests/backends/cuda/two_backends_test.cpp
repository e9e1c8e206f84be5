// Two CUDA backends side by side: each has a stream, recordings and a rounding of products of its
// own. On the emulator.
#include <doctest/doctest.h>

#include <cmath>
#include <optional>

#include "backends/backends.h"
#include "backends/cuda/device.h"
#include "src/ops/elementwise.h"
#include "src/ops/matmul.h"
#include "src/runtime/program.h"
#include "tests/support/checks.h"

namespace keel::cuda {
namespace {

__global__ void count_up(Global<float> y) { y[grid_thread()] += 1; }

// 1 + 2^-12, which tf32 rounds to 1: its square tells whether a product has rounded it.
constexpr double kFine = 1 + 1.0 / 4096;

// A program that squares x by a product, and its square's scale as an update of a state.
struct Square {
  explicit Square(const Options& options) : backend(options) {
    const Value x = graph.input("x", {DType::kF32, {1, 1}});
    const Value count = graph.state("count", {DType::kF32, {}}, nullptr);
    graph.mark_output("y", ops::matmul(graph, x, x));
    graph.mark_update(count, ops::scale(graph, count, 1, 1));
    program.emplace(backend, variables, graph);
  }

  double run(double x) {
    program->feed("x", Tensor::of<double>({1, 1}, {x}));
    program->run();
    return program->fetch("y").at(0);
  }

  CudaBackend backend;
  Variables variables{backend, 1};
  Graph graph;
  std::optional<Program> program;
};

// The number of the emulator's devices whose memory a backend gets; -1: none.
int device_of(const BackendOptions& options) {
  const auto memory = make_backend("cuda", options)->allocate(4);
  for (int number = 0; number < device_count(); ++number) {
    if (address_refusal(number, memory->address()).empty()) return number;
  }
  return -1;
}

TEST_CASE("two cuda backends: each takes the device that it is given, or that of its rank") {
  REQUIRE(device_count() == 2);
  CHECK(device_of({}) == 0);
  CHECK(device_of({.device = 1}) == 1);
  for (const int rank : {0, 1, 2, 5}) {
    CAPTURE(rank);
    CHECK(device_of({.local_rank = rank}) == rank % 2);
    CHECK(device_of({.device = 0, .local_rank = rank}) == 0);
  }
  CHECK_THROWS_WITH_AS(make_backend("cuda", {.device = 2}),
                       "device: expected one of the 2 that CUDA counts, from 0 on, got 2", Error);
}

TEST_CASE("two cuda backends: each rounds the factors of products as it was told to") {
  for (const bool first_rounds : {true, false}) {
    CAPTURE(first_rounds);
    Square first({.tf32 = first_rounds}), second({.tf32 = !first_rounds});
    const double exact = double(float(kFine * kFine));
    for (int step = 0; step < 4; ++step) {  // as it is, then recorded, then replayed
      CAPTURE(step);
      CHECK(first.run(kFine) == (first_rounds ? 1 : exact));
      CHECK(second.run(kFine) == (first_rounds ? exact : 1));
    }
  }
}

TEST_CASE(
    "two cuda backends: tf32 keeps ten bits of a factor, rounded to the nearest, even in ties") {
  Square rounded({.tf32 = true});
  const double unit = 1.0 / 1024;
  const std::pair<double, double> kFactors[] = {
      {1 + unit, 1 + unit},        {1 + unit / 2, 1}, {1 + 1.5 * unit, 1 + 2 * unit},
      {1 + 0.51 * unit, 1 + unit}, {-3, -3},          {INFINITY, INFINITY}};
  for (const auto& [factor, kept] : kFactors) {
    CAPTURE(factor);
    CHECK(rounded.run(factor) == double(float(kept * kept)));
  }
}

TEST_CASE("two cuda backends: steps that are run in turn are recorded and replayed apart") {
  Square first({}), second({});
  for (int step = 1; step <= 5; ++step) {
    CAPTURE(step);
    CHECK(first.run(step) == step * step);
    if (step % 2 == 0) continue;
    CHECK(second.run(10 * step) == 100 * step * step);
  }
  CHECK(first.variables.read("count").at(0) == 5);
  CHECK(second.variables.read("count").at(0) == 3);
}

TEST_CASE(
    "two cuda backends: what another one runs while a step is recorded is no part of the step") {
  const auto first = std::make_shared<Device>(Options{});
  const auto second = std::make_shared<Device>(Options{});
  std::byte* const memory = second->allocate(4);
  const Global<float> y(reinterpret_cast<float*>(memory), 1);
  const auto value = [&] {
    float result = 0;
    second->download(&result, memory, 4);
    return result;
  };
  const Kernel kernel = [&] {
    const OnDevice here(*second);
    launch(count_up, {1, 1}, y);
    CHECK(value() > 0);  // the second may be waited for meanwhile
  };
  const Kernel recorded = first->record({&kernel, 1}, in_a_row(1));
  CHECK(value() == 1);
  recorded();
  CHECK(value() == 1);
  CHECK_THROWS_AS(current_device(), Error);
  second->release(memory);
}

TEST_CASE("two cuda backends: waiting for one completes no copy of the other") {
  CudaBackend first({}), second({});
  const auto memory = first.allocate(4);
  const auto readback = first.allocate_readback(4);
  readback->receive(0, memory->address(), 4);
  second.run({});
  CHECK_FALSE(readback->is_complete());
  first.run({});
  CHECK(readback->is_complete());
}

TEST_CASE("two cuda backends: a kernel that is started outside of a backend's run is an error") {
  float value = 0;
  CHECK_THROWS_WITH_AS(launch(count_up, {1, 1}, Global<float>(&value, 1)),
                       "[emulator] a kernel outside of every run", Error);
}

}  // namespace
}  // namespace keel::cuda
