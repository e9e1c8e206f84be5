#include "bench/step_bench.h"

#include <algorithm>
#include <chrono>

#include "backends/backends.h"
#include "bench/part.h"
#include "bench/plain_copy.h"
#include "bench/step_peer.h"
#include "frontend/train/feeder.h"
#include "frontend/train/step_graph.h"
#include "src/ops/conv2d.h"
#include "src/ops/matmul.h"

namespace keel::bench {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

bool is_product(const Node& node) {
  return node.op->name == "matmul" || node.op->name.starts_with("conv2d");
}

// Operations of a product or convolution, those with padding round an image included.
double flop_of(const Graph& graph, const Node& node) {
  const auto shape = [&](int i) -> const Shape& {
    return graph.shape(node.inputs[std::size_t(i)]);
  };
  if (node.op == &kMatmul) {
    const MatmulSizes sizes =
        matmul_sizes(shape(MatmulInput::kA), shape(MatmulInput::kB), node.attrs.as<MatmulAttrs>());
    return 2.0 * double(sizes.batch * sizes.m) * double(sizes.k * sizes.n);
  }
  // Each element of y takes, or each of dy gives, what lies under one filter.
  const Shape& result = node.outputs[0].shape;
  const bool is_forward = node.op == &kConv2d, is_dweight = node.op == &kConv2dBackwardWeight;
  const Shape& filters = is_dweight ? result : shape(ConvInput::kWeight);
  const Shape& y =
      is_forward ? result : shape(is_dweight ? +ConvDweightInput::kDy : ConvDxInput::kDy);
  return 2.0 * double(y.elements()) * double(filters.elements(1, 4));
}

double flop_of_products(const Graph& graph) {
  double sum = 0;
  for (int i = 0; i < graph.size(); ++i) {
    const Node& node = graph.node(i);
    if (node.kind == NodeKind::kOp && is_product(node)) sum += flop_of(graph, node);
  }
  return sum;
}

bool is_update(const Node& node) { return node.op->keeps_on_guard; }

// One parameter element is read with its gradient and moments, and written with its moments.
std::int64_t bytes_moved(const Graph& graph) {
  std::int64_t bytes = 0;
  for (int i = 0; i < graph.size(); ++i) {
    const Node& node = graph.node(i);
    if (node.kind != NodeKind::kOp || !is_update(node)) continue;
    for (Value v : node.inputs) bytes += v.valid() ? graph.type(v).bytes() : 0;
    for (const TensorType& type : node.outputs) bytes += type.bytes();
  }
  return bytes;
}

// Ordinary numbers everywhere: zeros and denormals have speeds of their own.
void feed_random(Program& program, const Graph& graph) {
  for (int i = 0; i < graph.size(); ++i) {
    const Node& node = graph.node(i);
    if (node.kind != NodeKind::kInput || !is_floating(node.outputs[0].dtype)) continue;
    Tensor value(DType::kF32, node.outputs[0].shape);
    const Philox random(1, stream_of(node.name));
    std::uint64_t element = 0;
    for (float& x : value.as<float>()) x = float(random.uniform(element++)) - 0.5f;
    program.feed(node.name, value);
  }
}

// The training data in order, unless their batches then have other shapes than in training: text in
// lanes is evaluated in other ones.
std::unique_ptr<task::Stream> typical_stream(const train::Job& job) {
  task::StreamOptions options{.batch = job.train().batch, .shuffle = {}};
  auto in_order = job.splits().stream(task::Split::kTrain, options);
  options.shuffle = std::uint64_t(job.train().seed);
  auto trained = job.splits().stream(task::Split::kTrain, options);
  const auto shapes = trained->shapes();
  const bool has_shape = std::ranges::find(shapes, in_order->shapes().front()) != shapes.end();
  return has_shape ? std::move(in_order) : std::move(trained);
}

}  // namespace

TypicalBatch::TypicalBatch(const train::Job& job)
    : stream(typical_stream(job)), batch(stream->at(0, stream->steps(0) / 2)) {}

void feed_batch(Program& step, const train::Job& job) {
  const TypicalBatch typical(job);
  train::Feeder(job.network()).feed(step, typical.batch, {.rate = kLearningRate});
}

StepBench bench_step(Backend& backend, const train::Job& job, int rounds, LibraryPeer* library) {
  const Graph graph = train::build_step(job, TypicalBatch(job).batch.sizes);
  return measure_step(backend,
                      {.graph = graph,
                       .feed = [&](Program& step) { feed_batch(step, job); },
                       .peer_case = [&] { return step_case(backend, job); }},
                      rounds, library);
}

StepBench measure_step(Backend& backend, const MeasuredStep& measured, int rounds,
                       LibraryPeer* library) {
  Variables variables(backend, 1), products_variables(backend, 1), update_variables(backend, 1);
  Program step(backend, variables, measured.graph, {.guard = "grad_norm"});
  measured.feed(step);
  const Graph products_graph = part_of(step.graph(), is_product);
  const Graph update_graph = part_of(step.graph(), is_update);
  Program products(backend, products_variables, products_graph, {.optimize = false, .guard = ""});
  Program updates(backend, update_variables, update_graph, {.optimize = false, .guard = ""});
  feed_random(products, products_graph);
  feed_random(updates, update_graph);
  StepBench result;
  result.products_flop = flop_of_products(step.graph());
  result.optimizer_bytes = bytes_moved(step.graph());
  // A copy of n bytes moves 2n: it reads as much as it writes.
  const std::int64_t half = result.optimizer_bytes / 2;
  const auto from = backend.allocate(half), to = backend.allocate(half);
  const Kernel plain = plain_copy(backend, to->address(), from->address(), half);
  const Kernel copy = backend.record({&plain, 1});
  const std::function<void()> bodies[] = {[&] { step.run(); }, [&] { products.run(); },
                                          [&] { updates.run(); }, copy};
  std::vector<Sampler> samplers{[&](int n) { return sample_in_turns(bodies, n, 1, &backend); }};
  std::vector<PeerMode> modes;
  if (library != nullptr) {
    modes = library->set_up(measured.peer_case());
    result.peer_refusal = refusals_of(modes);
    if (library->has_modes()) {
      samplers.push_back([&](int n) { return sample_in_turns({bodies, 1}, n, 1, &backend); });
      samplers.push_back([&](int n) { return library->sample(1, n, 1); });
    }
  }
  const std::vector<Timing> times = time_in_blocks(samplers, rounds);
  result.step = times[0];
  result.products = times[1];
  result.optimizer = times[2];
  result.copy = times[3];
  if (samplers.size() > 1) {
    result.peer = peer_times(modes, times[4], std::span(times).subspan(5));
    const auto both = std::span(samplers).subspan(1);
    result.peer_under_load = peer_times_under_load(*library, modes, both, rounds);
  }
  result.profile = step.profile(std::max(rounds / 4, 3));
  return result;
}

double first_step_seconds(const train::Job& job, const MakeBackend& make) {
  const auto start = Clock::now();
  const auto backend = make();
  Variables variables(*backend, 1);
  Program step(*backend, variables, train::build_step(job), {.guard = "grad_norm"});
  step.run();
  step.scalar("grad_norm");  // waits for it
  return seconds_since(start);
}

OverheadBench bench_overhead(const train::Job& job, int rounds) {
  OverheadBench result;
  const auto backend = make_backend("null");
  auto start = Clock::now();
  const Graph graph = train::build_step(job);
  result.build_seconds = seconds_since(start);
  Variables variables(*backend, 1);
  start = Clock::now();
  Program program(*backend, variables, graph);
  result.compile_seconds = seconds_since(start);
  result.kernels = program.kernels();
  const std::function<void()> bodies[] = {[&] { program.run(); }};
  const Timing time = time_in_turns(bodies, rounds)[0];
  result.nanoseconds_per_kernel = time.median * 1e9 / result.kernels;
  return result;
}

}  // namespace keel::bench
