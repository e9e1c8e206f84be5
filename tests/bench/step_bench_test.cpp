// The benchmarks themselves: what they count, and the run loop's cost, which is promised.
#include "bench/step_bench.h"

#include <doctest/doctest.h>

#include "backends/backends.h"
#include "bench/recurrent_bench.h"
#include "src/graph/verify.h"
#include "src/ops/matmul.h"
#include "tests/support/small_run.h"

namespace keel::bench {
namespace {

TEST_CASE("bench: a step costs more than its parts, and the optimizer's bytes are counted") {
  const train::Job job = test::small_job();
  const auto backend = make_backend(default_backend());
  const StepBench b = bench_step(*backend, job, 5);
  CHECK(b.step.median > 0);
  CHECK(b.products.median > 0);
  CHECK(b.optimizer.median > 0);
  // Parameter, gradient and two moments are read, all but the gradient written; the scalars lr,
  // scale and step are read once for each of the 8 parameters.
  const std::int64_t parameters = 784 * 16 + 16 * 16 + 16 * 10 + 10 + 4 * 16;
  CHECK(b.optimizer_bytes == 7 * 4 * parameters + 8 * 3 * 4);
  // Forward, the gradients of all three weights, and of all inputs but the images.
  const std::int64_t first = 784 * 16, others = 16 * 16 + 16 * 10;
  CHECK(b.products_flop == double(2 * job.train().batch * (2 * first + 3 * others)));
  double total = 0;
  for (const NodeTime& node : b.profile) total += node.nanoseconds;
  CHECK(total > 0);
}

// Two convolutions of 5 x 5, the second on images of half the size, and two linear layers; the
// first convolution needs no gradient of its images.
TEST_CASE("bench: the operations of convolutions are counted") {
  const train::Job job = test::small_job({}, "mnist_cnn");
  const StepBench b = bench_step(*make_backend(default_backend()), job, 3);
  const std::int64_t first = 24 * 24 * 20 * 25;
  const std::int64_t others = 8 * 8 * 50 * 20 * 25 + 800 * 500 + 500 * 10;
  CHECK(b.products_flop == double(2 * job.train().batch * (2 * first + 3 * others)));
}

TEST_CASE("bench: the run loop costs at most 100 ns a node") {
  for (const char* model : {"mnist_mlp", "mnist_cnn"}) {
    const OverheadBench b = bench_overhead(test::small_job({}, model), 200);
    CAPTURE(b.nanoseconds_per_kernel);
    CHECK(b.kernels > 20);
    CHECK(b.nanoseconds_per_kernel > 0);
    CHECK(b.nanoseconds_per_kernel <= 100);
    CHECK(b.compile_seconds > 0);
  }
}

// The types of the first factors of all products of a step.
DTypes factor_types(const RecurrentCase& c) {
  const Graph step = recurrent_step(c);
  verify(step, "recurrent_step");
  DTypes types;
  for (int i = 0; i < step.size(); ++i) {
    const Node& node = step.node(i);
    if (node.op == &kMatmul) types = types | step.type(node.inputs[MatmulInput::kA]).dtype;
  }
  return types;
}

TEST_CASE("bench: the products of a recurrent step have the factors that are asked for") {
  RecurrentCase c{.layers = 2, .width = 6, .steps = 3, .rows = 2};
  for (const Cell cell : {Cell::kLstm, Cell::kGru}) {
    c.cell = cell;
    c.is_narrow = false;
    CHECK(factor_types(c) == DTypes(DType::kF32));
    c.is_narrow = true;
    CHECK(factor_types(c) == DTypes(DType::kBF16));
  }
}

}  // namespace
}  // namespace keel::bench
