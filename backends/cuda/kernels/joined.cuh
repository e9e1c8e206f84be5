// One launch for several consecutive nodes of one kind that do not touch each other's results. A
// node's elements are cut into pieces of neighbouring groups of four; a block works on one piece.
#pragma once

#include <algorithm>
#include <vector>

#include "backends/cuda/kernels/group4.cuh"

namespace keel::cuda {

inline constexpr int kPieceBlock = 256;  // threads that work on a piece

// Piece `number` of a node: its groups of four `first` to `last` - 1.
struct Piece {
  int node;
  std::int64_t number, first, last;
};

// The nodes of one launch: at most 32, and no more than fit a kernel's parameters, which hold them
// and some factors in 4 KB. Tensors: the data that the kernel needs of one node, with groups4().
template <class Tensors>
struct Batch {
  static constexpr int kMost = std::min(32, int(3840 / (sizeof(Tensors) + sizeof(std::int64_t))));
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
    int node = 0;
    while (blockIdx.x >= end_block[node]) ++node;
    const std::int64_t number = blockIdx.x - (node == 0 ? 0 : end_block[node - 1]);
    const std::int64_t first = number * length, groups4 = nodes[node].groups4();
    return {node, number, first, first + length < groups4 ? first + length : groups4};
  }
};

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
