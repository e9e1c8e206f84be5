// Sums of squares of many tensors, in two launches: first the sums of pieces of fixed size, then
// the sums of the pieces' sums; all in double. And the norm of all these tensors.
#include <memory>

#include "backends/cuda/kernels/joined.cuh"
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/table_rows.cuh"
#include "backends/cuda/kernels/warp.cuh"
#include "src/ops/optimizer_step.h"

namespace keel::cuda {
namespace {

// The tensors that a sum of squares reads and writes: x, the sum y, and the sums of the pieces.
struct Squares {
  Global<const float> x;
  Global<float> y;
  Global<double> partial;
  __host__ __device__ std::int64_t groups4() const { return groups4_of(x.size()); }
};

constexpr std::int64_t kSquaresPiece = 4 * kPieceBlock;  // groups of four

std::int64_t pieces_of(std::int64_t elements) {
  return ceil_div(groups4_of(elements), kSquaresPiece);
}
std::int64_t pieces_of(const TensorType& x) { return pieces_of(x.shape.elements()); }

template <int kNodes>
__global__ void __launch_bounds__(kPieceBlock) square_pieces(Batch<Squares, kNodes> batch) {
  const Piece piece = batch.piece();
  const Squares t = batch.nodes[piece.node];
  double sum = 0;
  for (std::int64_t q = piece.first + threadIdx.x; q < piece.last; q += kPieceBlock) {
    const Group4 group4 = load_group4(t.x, q);
    for (const float value : group4.at) sum += double(value) * value;
  }
  sum = over_block<kPieceBlock>(sum, Add());
  if (threadIdx.x == 0) t.partial[piece.number] = sum;
}

// The same of a table's gradient, of which rows are given: elsewhere it is 0, which adds nothing.
__global__ void __launch_bounds__(kPieceBlock)
    square_pieces_of_rows(TableRows rows, std::int64_t groups4, Global<double> partial) {
  const Piece piece = piece_of(groups4, kSquaresPiece);
  const TableRows::Range near = rows.range_of(piece);
  double sum = 0;
  for (std::int64_t q = piece.first + threadIdx.x; q < piece.last; q += kPieceBlock) {
    Group4 group4{};
    rows.read(q, near, group4);
    for (const float value : group4.at) sum += double(value) * value;
  }
  sum = over_block<kPieceBlock>(sum, Add());
  if (threadIdx.x == 0) partial[piece.number] = sum;
}

// A block for each sum.
template <int kNodes>
__global__ void __launch_bounds__(kPieceBlock) add_pieces(Batch<Squares, kNodes> batch) {
  const Squares t = batch.nodes[blockIdx.x];
  double sum = 0;
  for (std::int64_t i = threadIdx.x; i < t.partial.size(); i += kPieceBlock) sum += t.partial[i];
  sum = over_block<kPieceBlock>(sum, Add());
  if (threadIdx.x == 0) t.y[0] = float(sum);
}

// The sums of one tensor or of several.
struct SumSquares {
  std::vector<Binding> nodes;
  std::shared_ptr<std::byte> partial = {};  // of several: their workspaces may be the same memory

  bool goes_with(const SumSquares&) const { return true; }
  void append(const Binding& node) {
    nodes.push_back(node);
    std::int64_t pieces = 0;
    for (const Binding& b : nodes) pieces += pieces_of(b.inputs[0].type);
    const std::shared_ptr<Device> device = current_device().shared_from_this();
    partial = {device->allocate(pieces * std::int64_t(sizeof(double))),
               [device](std::byte* memory) { device->release(memory); }};
  }
  void operator()() const {
    void* const memory = partial ? partial.get() : nodes.front().workspace;
    auto* place = static_cast<double*>(memory);
    in_batches<Squares>(nodes, [&](std::span<const Binding> some, auto capacity) {
      constexpr int kNodes = decltype(capacity)::value;
      Batch<Squares, kNodes> batch(kSquaresPiece);
      for (const Binding& node : some) {
        const std::int64_t pieces = pieces_of(node.inputs[0].type);
        batch.append({input(node.inputs[0]), output(node.outputs[0]), {place, pieces}});
        place += pieces;
      }
      launch(square_pieces<kNodes>, {batch.blocks(), kPieceBlock}, batch);
      launch(add_pieces<kNodes>, {batch.count, kPieceBlock}, batch);
    });
  }
};

void sum_squares_of_rows(const Binding& b, std::int64_t elements) {
  using In = SumSquaresInput;
  const std::int64_t pieces = pieces_of(elements);
  const auto partial = workspace<double>(b, pieces);
  launch(square_pieces_of_rows, {pieces, kPieceBlock},
         TableRows(b.inputs[In::kX], b.inputs[In::kIds]), groups4_of(elements), partial);
  Batch<Squares, kFewNodes> sum(kSquaresPiece);
  sum.append({input(b.inputs[In::kX]), output(b.outputs[0]), partial});
  launch(add_pieces<kFewNodes>, {1, kPieceBlock}, sum);
}

// The inputs of a part of a total norm.
struct Scalars {
  static constexpr int kMost = 256;
  const float* at[kMost];
  int count = 0;
};

// The norm of tensors from their sums of squares, part after part, each by one block. `sum` holds
// that of the parts before.
__global__ void __launch_bounds__(kPieceBlock)
    add_squares(Scalars squares, bool is_first, bool is_last, Global<double> sum, Global<float> y) {
  static_assert(Scalars::kMost <= kPieceBlock);
  __shared__ Shared<double, Scalars::kMost> values;
  const int i = int(threadIdx.x);
  if (i < squares.count) values[i] = double(Global<const float>(squares.at[i], 1)[0]);
  __syncthreads();
  if (i != 0) return;
  double total = is_first ? 0 : sum[0];
  for (int j = 0; j < squares.count; ++j) total += values[j];
  sum[0] = total;
  if (is_last) y[0] = float(sqrt(total));
}

void total_norm(const Binding& b) {
  const auto sum = workspace<double>(b, 1);
  for (std::size_t first = 0; first < b.inputs.size(); first += Scalars::kMost) {
    Scalars some;
    const std::size_t last = std::min(first + Scalars::kMost, b.inputs.size());
    for (std::size_t i = first; i < last; ++i) some.at[some.count++] = b.inputs[i].as<float>();
    launch(add_squares, {1, kPieceBlock}, some, first == 0, last == b.inputs.size(), sum,
           output(b.outputs[0]));
  }
}

}  // namespace

Prepared prepare_total_norm(const NodeContext&) { return kernel_of(total_norm, sizeof(double)); }

Prepared prepare_sum_squares(const NodeContext& context) {
  using In = SumSquaresInput;
  if (context.has(In::kIds)) {
    const std::int64_t elements =
        context.attrs<SumSquaresAttrs>().vocabulary * context.input(In::kX).shape[1];
    return kernel_of([=](const Binding& b) { sum_squares_of_rows(b, elements); },
                     pieces_of(elements) * std::int64_t(sizeof(double)));
  }
  return {[](const Binding& b) -> Kernel { return SumSquares{{b}}; },
          pieces_of(context.input(0)) * std::int64_t(sizeof(double))};
}

bool is_sum(const Kernel& kernel) { return kernel.target<SumSquares>() != nullptr; }

bool join_sums(Kernel& a, const Kernel& b) { return join<SumSquares>(a, b); }

}  // namespace keel::cuda
