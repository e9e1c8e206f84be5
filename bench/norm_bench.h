// keel bench norms: a norm's forward and backward beside a plain copy of the bytes it must move.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/library_peer.h"
#include "bench/timing.h"
#include "src/runtime/backend.h"

namespace keel::bench {

struct NormPass {
  Timing norm;
  Timing copy;                     // a plain copy that moves as many bytes (see plain_copy.h)
  std::optional<Timing> streamed;  // a copy past the caches, where the norm's result goes past them
  std::optional<Timing> peer;      // oneDNN's own primitive, where it has one (see norm_peer.h)
  // The fewest bytes that must move: forward x in and y out; backward x (or y) and dy in and dx
  // out, or only dy in and dx out for a norm whose deviation counts as constant. With a residual,
  // forward that in and the sum out, too; backward the sum's gradient in.
  std::int64_t bytes = 0;

  double gigabytes_per_second() const { return double(bytes) / norm.median * 1e-9; }
  // The norm's speed divided by the plain copy's; 1 is as fast as a copy.
  double ratio() const { return copy.median / norm.median; }
  double streamed_ratio() const { return streamed->median / norm.median; }
  double peer_ratio() const { return copy.median / peer->median; }
};

struct NormBench {
  std::string norm;
  Shape x;
  NormPass forward = {}, backward = {};
  // Times of the library's forward, and of its forward with backward, which keel runs as one
  // program. Blocks of 10 rounds of either alternate.
  std::optional<PeerTimes> peer = {}, peer_under_load = {};
  std::string peer_refusal = {};  // why the library, or some of its modes, has no times
  std::string refusal = {};  // why this norm does not run on this shape; then there are no times
};

struct NormBenchOptions {
  LibraryPeer* library = nullptr;  // is timed, too
  bool is_narrow = false;          // x, dy, y and dx are bf16 (narrow_norms)
  bool has_residual = false;  // the norm reads x + residual, which is a result, too (norm_graph)
};

// Times the norm (as nn::Norm::parse takes it) of x in training mode. All bodies run in turns;
// small sizes run several times a turn. x and dy are standard normal.
NormBench bench_norm(Backend& backend, const std::string& norm, const Shape& x, int rounds,
                     const NormBenchOptions& options = {});

// The shapes measured by default; those for a GPU are large enough to fill it.
std::vector<Shape> norm_bench_shapes(bool of_gpu = false);

}  // namespace keel::bench
