#include "bench/norm_bench.h"

#include <algorithm>

#include "bench/norm_graph.h"
#include "bench/norm_peer.h"
#include "bench/part.h"
#include "bench/plain_copy.h"
#include "frontend/nn/norm.h"
#include "src/runtime/program.h"

namespace keel::bench {
namespace {

Tensor standard_normal(const Shape& shape, const std::string& name) {
  Tensor value(DType::kF32, shape);
  const Philox random(1, stream_of(name));
  std::uint64_t element = 0;
  for (float& v : value.as<float>()) v = float(random.normal(element++));
  return value;
}

// The graph with what the inputs "node:port" of a part of it stand for as outputs of these names.
Graph exposing(const Graph& graph, const Graph& part) {
  Graph result = graph;
  for (int i = 0; i < graph.size(); ++i) {
    for (int port = 0; port < int(graph.node(i).outputs.size()); ++port) {
      const std::string name = fmt::format("{}:{}", graph.node(i).name, port);
      if (part.find_leaf(name).valid()) result.mark_output(name, {i, port});
    }
  }
  return result;
}

const CompileOptions kAsItIs{.optimize = false, .guard = ""};

// The forward and the backward of a norm, each a program of its own, fed with what it meets in the
// whole: statistics saved for the backward are real ones.
struct NormPrograms {
  Graph forward_graph, backward_graph;
  Variables variables;
  Program forward, backward;

  NormPrograms(Backend& backend, const Graph& graph, const Tensor& x, const Tensor& dy)
      : forward_graph(part_of(graph, is_norm_forward)),
        backward_graph(part_of(graph, is_norm_backward)),
        variables(backend, 1),
        forward(backend, variables, forward_graph, kAsItIs),
        backward(backend, variables, backward_graph, kAsItIs) {
    forward.feed("x", x);
    Program whole(backend, variables, exposing(graph, backward_graph), kAsItIs);
    whole.feed("x", x);
    whole.feed("dy", dy);
    whole.run();
    for (int i = 0; i < backward_graph.size(); ++i) {
      const Node& node = backward_graph.node(i);
      if (node.kind != NodeKind::kInput) continue;
      const bool is_fed = node.name == "x" || node.name == "dy";
      backward.feed(node.name, !is_fed            ? whole.fetch(node.name, true)
                               : node.name == "x" ? x.clone()
                                                  : dy.clone());
    }
  }
};

// How many tensors as large as x a backward must read: dy and, unless the deviation counts as
// constant, x or y.
std::int64_t tensors_read(const Graph& backward, std::int64_t elements) {
  std::int64_t count = 0;
  for (int i = 0; i < backward.size(); ++i) {
    const Node& node = backward.node(i);
    count += node.kind == NodeKind::kInput && node.outputs[0].shape.elements() == elements;
  }
  return std::min<std::int64_t>(count, 2);
}

// Two buffers, and kernels that copy between them.
struct Copies {
  std::unique_ptr<Memory> from, to;
  Kernel forward, backward;  // moving forward_bytes and backward_bytes: half is read, half written

  Copies(Backend& backend, std::int64_t forward_bytes, std::int64_t backward_bytes)
      : from(backend.allocate(backward_bytes / 2)),
        to(backend.allocate(backward_bytes / 2)),
        forward(plain_copy(backend, to->address(), from->address(), forward_bytes / 2)),
        backward(plain_copy(backend, to->address(), from->address(), backward_bytes / 2)) {}
};

// Times every body of `bodies` in turns, each `repeats` times a turn.
std::vector<Timing> time_repeated(const std::vector<std::function<void()>>& bodies, int rounds,
                                  int repeats) {
  std::vector<std::function<void()>> repeated;
  for (const auto& body : bodies) {
    repeated.push_back([&body, repeats] {
      for (int i = 0; i < repeats; ++i) body();
    });
  }
  std::vector<Timing> times = time_in_turns(repeated, rounds);
  for (Timing& t : times) {
    t = {t.median / repeats, t.p10 / repeats, t.p90 / repeats};
  }
  return times;
}

void measure(Backend& backend, NormBench& result, int rounds) {
  const Tensor x = standard_normal(result.x, "x"), dy = standard_normal(result.x, "dy");
  NormPrograms norm(backend, norm_graph(result.norm, result.x), x, dy);
  check(norm.forward.kernels() > 0 && norm.backward.kernels() > 0, ErrorKind::kUsage,
        "norm {}: has nothing to measure", result.norm);
  const std::int64_t tensor = x.elements() * size_of(backend.storage(DType::kF32));
  result.forward.bytes = 2 * tensor;
  result.backward.bytes = (1 + tensors_read(norm.backward_graph, x.elements())) * tensor;
  const Copies copies(backend, result.forward.bytes, result.backward.bytes);
  const auto peer = make_norm_peer(backend, result.norm, x, dy);
  const auto run = [&](const Kernel& kernel) { return [&] { backend.run({&kernel, 1}); }; };
  std::vector<std::function<void()>> bodies{[&] { norm.forward.run(); }, run(copies.forward),
                                            [&] { norm.backward.run(); }, run(copies.backward)};
  if (peer) bodies.insert(bodies.end(), {run(peer->forward), run(peer->backward)});
  constexpr std::int64_t kLeastBytes = 1 << 20;  // of x, that a body reads in a turn
  const int repeats = int(kLeastBytes / std::clamp<std::int64_t>(tensor, 1, kLeastBytes));
  const std::vector<Timing> times = time_repeated(bodies, rounds, repeats);
  result.forward.norm = times[0];
  result.forward.copy = times[1];
  result.backward.norm = times[2];
  result.backward.copy = times[3];
  if (peer) result.forward.peer = times[4];
  if (peer) result.backward.peer = times[5];
}

}  // namespace

NormBench bench_norm(Backend& backend, const std::string& norm, const Shape& x, int rounds) {
  nn::Norm::parse(norm);  // an unknown name is an error, not a refusal
  NormBench result{norm, x, {}, {}, ""};
  try {
    measure(backend, result, rounds);
  } catch (const Error& error) {
    const bool is_refusal =
        error.kind() == ErrorKind::kUsage || error.kind() == ErrorKind::kBackendMissing;
    if (!is_refusal) throw;
    result.refusal = error.what();
  }
  return result;
}

std::vector<Shape> norm_bench_shapes() {
  return {{8, 400},    {128, 1000},  {1024, 1024},    {4096, 128},
          {4096, 512}, {32768, 512}, {32, 64, 56, 56}};
}

}  // namespace keel::bench
