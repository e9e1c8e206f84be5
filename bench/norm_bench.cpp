#include "bench/norm_bench.h"

#include <algorithm>

#include "bench/norm_peer.h"
#include "bench/norm_programs.h"
#include "bench/plain_copy.h"
#include "src/core/rng.h"
#include "src/passes/narrow_norms.h"

namespace keel::bench {
namespace {

// Elements beyond this prime number repeat the first ones: sampling billions takes minutes.
constexpr std::size_t kDrawn = 1'048'573;

Tensor standard_normal(const Shape& shape, const std::string& name) {
  Tensor value(DType::kF32, shape);
  const Philox random(1, stream_of(name));
  const std::span<float> all = value.as<float>();
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i] = i < kDrawn ? float(random.normal(i)) : all[i - kDrawn];
  }
  return value;
}

// How many tensors as large as x a backward must read: dy, the gradient of the sum if there is one
// and, unless the deviation counts as constant, x or y.
std::int64_t tensors_read(const Graph& backward, std::int64_t elements, bool has_residual) {
  std::int64_t count = 0;
  for (int i = 0; i < backward.size(); ++i) {
    const Node& node = backward.node(i);
    count += node.kind == NodeKind::kInput && node.outputs[0].shape.elements() == elements;
  }
  return std::min<std::int64_t>(count, has_residual ? 3 : 2);
}

// A kernel that copies between two buffers of its own: no other copy changes which of them are in
// the caches.
struct Copy {
  std::unique_ptr<Memory> from, to;
  Kernel run;

  // Moving so many bytes: half is read, half written.
  template <class MakeCopy>
  Copy(Backend& backend, std::int64_t bytes, const MakeCopy& make_copy)
      : from(backend.allocate(bytes / 2)),
        to(backend.allocate(bytes / 2)),
        run(make_copy(backend, to->address(), from->address(), bytes / 2)) {}
};

struct Copies {
  Copy plain;
  std::optional<Copy> streamed;

  Copies(Backend& backend, std::int64_t bytes) : plain(backend, bytes, plain_copy) {
    if (is_streamed(backend, bytes / 2)) streamed.emplace(backend, bytes, streamed_copy);
  }
};

// The measurements that are timed in turns, and where the times go.
struct Turns {
  Backend& backend;
  std::vector<std::function<void()>> bodies = {};
  std::vector<std::function<void(const Timing&)>> keep = {};

  void add(std::function<void()> body, std::function<void(const Timing&)> keep_time) {
    bodies.push_back(std::move(body));
    keep.push_back(std::move(keep_time));
  }
  // A pass of the norm, the copies and, unless it is null, oneDNN's own primitive.
  void add_pass(NormPass& pass, Program& program, const Copies& copies, const Kernel* peer) {
    const auto run = [this](const Kernel& kernel) {
      return [this, &kernel] { backend.run({&kernel, 1}); };
    };
    add([&program] { program.run(); }, [&pass](const Timing& t) { pass.norm = t; });
    add(backend.record({&copies.plain.run, 1}), [&pass](const Timing& t) { pass.copy = t; });
    if (copies.streamed) {
      add(run(copies.streamed->run), [&pass](const Timing& t) { pass.streamed = t; });
    }
    if (peer != nullptr) add(run(*peer), [&pass](const Timing& t) { pass.peer = t; });
  }
};

// The tensors and programs of one norm on one x.
struct Measured {
  Feeds feeds;
  nn::Norm norm;
  NormPrograms programs;

  Measured(Backend& backend, const std::string& name, const Shape& shape,
           const NormBenchOptions& options)
      : feeds(given(shape, options)),
        norm(nn::Norm::parse(name)),
        programs(backend, graph(norm, shape, options), feeds) {
    check(programs.forward.kernels() > 0 && programs.backward.kernels() > 0, ErrorKind::kUsage,
          "norm {}: has nothing to measure", name);
  }

 private:
  // In float32, which a peer is given, but numbers that bf16 holds.
  static Feeds given(const Shape& shape, const NormBenchOptions& options) {
    Feeds feeds;
    for (const char* name : {"x", "dy", "residual", "dsum"}) {
      Tensor value = standard_normal(shape, name);
      feeds[name] = options.is_narrow ? value.to(DType::kBF16).to(DType::kF32) : std::move(value);
      if (!options.has_residual && feeds.size() == 2) break;
    }
    return feeds;
  }
  static Graph graph(const nn::Norm& norm, const Shape& shape, const NormBenchOptions& options) {
    check(!options.is_narrow || norm.name() != "weightnorm", ErrorKind::kUsage,
          "norm weightnorm: has no x that could be bf16");
    Graph wide = norm_graph(norm, shape, options.has_residual);
    return options.is_narrow ? narrow_norms(wide) : std::move(wide);
  }
};

// How often a body runs in a turn.
int repeats_for(std::int64_t tensor_bytes) {
  constexpr std::int64_t kLeastBytes = 1 << 20;  // of x, that a body reads in a turn
  return int(kLeastBytes / std::clamp<std::int64_t>(tensor_bytes, 1, kLeastBytes));
}

void measure(Backend& backend, NormBench& result, int rounds, const NormBenchOptions& options) {
  Measured m(backend, result.norm, result.x, options);
  const Tensor &x = m.feeds.at("x"), &dy = m.feeds.at("dy");
  LibraryPeer* const library = options.library;
  const DType element = options.is_narrow ? DType::kBF16 : DType::kF32;
  const std::int64_t tensor = x.elements() * size_of(backend.storage(element));
  result.forward.bytes = (options.has_residual ? 4 : 2) * tensor;
  result.backward.bytes =
      (1 + tensors_read(m.programs.backward_graph, x.elements(), options.has_residual)) * tensor;
  const Copies forward(backend, result.forward.bytes), backward(backend, result.backward.bytes);
  const bool has_peer = !options.is_narrow && !options.has_residual;
  const auto peer = has_peer ? make_norm_peer(backend, result.norm, x, dy) : nullptr;
  Turns turns{backend};
  turns.add_pass(result.forward, m.programs.forward, forward, peer ? &peer->forward : nullptr);
  turns.add_pass(result.backward, m.programs.backward, backward, peer ? &peer->backward : nullptr);
  const std::vector<std::function<void()>> both{[&] { m.programs.both.run(); }};
  const int repeats = backend.times_cold() ? 1 : repeats_for(tensor);
  std::vector<Sampler> samplers{
      [&](int n) { return sample_in_turns(turns.bodies, n, repeats, &backend); }};
  std::vector<PeerMode> modes;
  if (library != nullptr) {
    PeerCase task = m.programs.peer_case(m.norm, m.feeds);
    task.what["is_narrow"] = task.is_narrow = options.is_narrow;
    modes = library->set_up(task);
    result.peer_refusal = refusals_of(modes);
    if (library->has_modes()) {
      samplers.push_back([&](int n) { return sample_in_turns(both, n, repeats, &backend); });
      samplers.push_back([&](int n) { return library->sample(2, n, repeats); });
    }
  }
  const std::vector<Timing> times = time_in_blocks(samplers, rounds);
  for (std::size_t i = 0; i < turns.keep.size(); ++i) turns.keep[i](times[i]);
  if (samplers.size() == 1) return;
  result.peer = peer_times(modes, times[turns.bodies.size()],
                           std::span(times).subspan(turns.bodies.size() + 1));
  result.peer_under_load =
      peer_times_under_load(*library, modes, std::span(samplers).subspan(1), rounds);
}

}  // namespace

NormBench bench_norm(Backend& backend, const std::string& norm, const Shape& x, int rounds,
                     const NormBenchOptions& options) {
  nn::Norm::parse(norm);  // an unknown name is an error, not a refusal
  NormBench result{.norm = norm, .x = x};
  try {
    measure(backend, result, rounds, options);
  } catch (const Error& error) {
    const bool is_refusal =
        error.kind() == ErrorKind::kUsage || error.kind() == ErrorKind::kBackendMissing;
    if (!is_refusal) throw;
    result.refusal = error.what();
  }
  return result;
}

std::vector<Shape> norm_bench_shapes(bool of_gpu) {
  if (of_gpu) {
    std::vector<Shape> shapes;
    for (const std::int64_t rows : {4096, 16384, 65536}) {
      for (const std::int64_t width : {256, 1024, 4096, 16384}) shapes.push_back({rows, width});
    }
    shapes.push_back({32, 64, 56, 56});
    return shapes;
  }
  return {{8, 400},    {128, 1000},  {1024, 1024},    {4096, 128},
          {4096, 512}, {32768, 512}, {32, 64, 56, 56}};
}

}  // namespace keel::bench
