// One launch for several nodes of one kind that do not touch each other's results. A node's
// elements are cut into pieces of neighbouring groups of four; a block works on one piece.
#pragma once

#include <algorithm>
#include <bit>
#include <span>
#include <type_traits>
#include <vector>

#include "backends/cuda/kernels/group4.cuh"

namespace keel::cuda {

inline constexpr int kPieceBlock = 256;  // threads that work on a piece

// Piece `number` of a node: its groups of four `first` to `last` - 1.
struct Piece {
  int node;
  std::int64_t number, first, last;
};

// The bytes that a kernel's parameters may have.
#if !defined(CUDART_VERSION) || CUDART_VERSION >= 12010
inline constexpr std::size_t kMostParameters = 32764;
#else
inline constexpr std::size_t kMostParameters = 4096;
#endif

// The nodes of a launch: a kernel is compiled for few and for many, since every launch copies all
// of its parameters.
inline constexpr int kFewNodes = 32, kManyNodes = 256;

// The nodes of one launch: at most kNodes, and no more than fit a kernel's parameters beside some
// factors. Tensors: the data that the kernel needs of one node, with groups4().
template <class Tensors, int kNodes>
struct Batch {
  static constexpr int kMost =
      std::min(kNodes, int((kMostParameters - 256) / (sizeof(Tensors) + sizeof(std::int64_t))));
  static constexpr int kLargestStep = int(std::bit_floor(unsigned(kMost)));
  Tensors nodes[kMost];
  std::int64_t end_block[kMost] = {};  // the first block after the node's own
  std::int64_t length;                 // groups of four in a piece
  int count = 0;

  explicit Batch(std::int64_t groups4_a_piece) : length(groups4_a_piece) {}
  void append(const Tensors& tensors) {
    nodes[count] = tensors;
    end_block[count] = blocks() + ceil_div(tensors.groups4(), length);
    ++count;
  }
  std::int64_t blocks() const { return count == 0 ? 0 : end_block[count - 1]; }

  // The piece that this block works on.
  __device__ Piece piece() const {
    int node = 0;  // the nodes whose blocks come before this one
    for (int step = kLargestStep; step > 0; step /= 2) {
      if (node + step <= count && end_block[node + step - 1] <= blockIdx.x) node += step;
    }
    const std::int64_t number = blockIdx.x - (node == 0 ? 0 : end_block[node - 1]);
    const std::int64_t first = number * length, groups4 = nodes[node].groups4();
    return {node, number, first, first + length < groups4 ? first + length : groups4};
  }
};

// Cuts nodes into launches: calls run(nodes, capacity), where Batch<Tensors, capacity> holds them.
template <class Tensors, class Run>
void in_batches(std::span<const Binding> nodes, const Run& run) {
  constexpr auto kMost = std::size_t(Batch<Tensors, kManyNodes>::kMost);
  while (!nodes.empty()) {
    const std::size_t count = std::min(nodes.size(), kMost);
    if (count <= std::size_t(Batch<Tensors, kFewNodes>::kMost)) {
      run(nodes.first(count), std::integral_constant<int, kFewNodes>());
    } else {
      run(nodes.first(count), std::integral_constant<int, kManyNodes>());
    }
    nodes = nodes.subspan(count);
  }
}

// Whether two nodes must not run at the same time: one writes what the other reads or writes.
inline bool interfere(const Binding& a, const Binding& b) {
  const auto meet = [](const TensorRef& x, const TensorRef& y) {
    const auto *from_x = x.as<std::byte>(), *from_y = y.as<std::byte>();
    return x && y && from_x < from_y + y.type.bytes() && from_y < from_x + x.type.bytes();
  };
  const auto writes_into = [&](const TensorRef& written, const Binding& other) {
    const auto met = [&](const TensorRef& t) { return meet(written, t); };
    return std::ranges::any_of(other.inputs, met) || std::ranges::any_of(other.outputs, met);
  };
  return std::ranges::any_of(a.outputs, [&](const auto& t) { return writes_into(t, b); }) ||
         std::ranges::any_of(b.outputs, [&](const auto& t) { return writes_into(t, a); });
}

// Adds the node of kernel b to those of a, if both are of the class Kind and fit together. A Kind
// is a kernel with `nodes`, goes_with() and append().
template <class Kind>
bool join(Kernel& a, const Kernel& b) {
  Kind* const into = a.target<Kind>();
  const Kind* const more = b.target<Kind>();
  if (!into || !more || !into->goes_with(*more)) return false;
  const Binding& node = more->nodes.front();
  const auto interferes = [&](const Binding& other) { return interfere(node, other); };
  if (std::ranges::any_of(into->nodes, interferes)) return false;
  into->append(node);
  return true;
}

}  // namespace keel::cuda
