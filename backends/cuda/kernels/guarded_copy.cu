// Copies of many tensors in one launch, which a scalar that is not finite prevents: of running
// statistics after a step.
#include "backends/cuda/kernels/joined.cuh"
#include "backends/cuda/kernels/kernels.h"

namespace keel::cuda {
namespace {

template <class T>
struct Copied {
  Global<const T> src;
  Global<T> dst;
  __host__ __device__ std::int64_t groups4() const { return groups4_of(dst.size()); }
};

constexpr std::int64_t kCopyPiece = kPieceBlock;  // groups of four

template <class T, int kNodes>
__global__ void __launch_bounds__(kPieceBlock)
    copy_if_finite(Global<const float> guard, Batch<Copied<T>, kNodes> batch) {
  if (!isfinite(guard[0])) return;
  const Piece piece = batch.piece();
  const Copied<T> t = batch.nodes[piece.node];
  const std::int64_t end = 4 * piece.last < t.dst.size() ? 4 * piece.last : t.dst.size();
  for (std::int64_t e = 4 * piece.first + threadIdx.x; e < end; e += kPieceBlock) {
    t.dst[e] = t.src[e];
  }
}

// T is as wide as the tensors' elements, or as several of them.
template <class T>
struct GuardedCopy {
  std::vector<Binding> nodes;  // inputs: src and guard

  const TensorRef& guard() const { return nodes.front().inputs[1]; }
  bool goes_with(const GuardedCopy& other) const { return guard().data == other.guard().data; }
  void append(const Binding& node) { nodes.push_back(node); }
  void operator()() const {
    in_batches<Copied<T>>(nodes, [&](std::span<const Binding> some, auto capacity) {
      constexpr int kNodes = decltype(capacity)::value;
      Batch<Copied<T>, kNodes> batch(kCopyPiece);
      for (const Binding& node : some) {
        batch.append({global<const T>(node.inputs[0]), global<T>(node.outputs[0])});
      }
      launch(copy_if_finite<T, kNodes>, {batch.blocks(), kPieceBlock}, input(guard()), batch);
    });
  }
};

using Words = GuardedCopy<std::uint32_t>;
using Bytes = GuardedCopy<std::uint8_t>;

}  // namespace

Kernel bind_copy(const TensorRef& dst, const TensorRef& src, const TensorRef& guard) {
  if (!guard) {
    return [dst, src] {
      current_device().copy(dst.as<std::byte>(), src.as<const std::byte>(), dst.type.bytes());
    };
  }
  const Binding node{{src, guard}, {dst}};
  if (size_of(dst.type.dtype) % sizeof(std::uint32_t) == 0) return Words{{node}};
  return Bytes{{node}};
}

bool is_copy(const Kernel& kernel) { return kernel.target<Words>() || kernel.target<Bytes>(); }

bool join_copies(Kernel& a, const Kernel& b) { return join<Words>(a, b) || join<Bytes>(a, b); }

}  // namespace keel::cuda
