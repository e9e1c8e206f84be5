// Optimizer updates of many parameters in one launch, four elements a thread. Every element is read
// before it is written, so outputs may lie over their inputs.
#include "backends/cuda/kernels/joined.cuh"
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/table_rows.cuh"
#include "backends/cuda/kernels/update_rules.cuh"

namespace keel::cuda {
namespace {

constexpr std::int64_t kUpdateBlocks = 2048;          // at most, about: more than run at once
constexpr std::int64_t kRowsPiece = 4 * kPieceBlock;  // groups of four in a block's part

// The treatment of rows without a gradient: they are updated, too, stay where they are, or are
// copied.
enum class Sparing { kNone, kInPlace, kCopied };

// The powers in double cost as much as many elements: a block works the factors out once, while
// its first elements are on their way. A scale that is not finite leaves everything as it is.
template <class Rule, int kNodes>
__global__ void __launch_bounds__(kPieceBlock)
    update(Rule rule, Batch<typename Rule::Tensors, kNodes> batch) {
  __shared__ Shared<typename Rule::Factors, 1> shared;
  const Piece piece = batch.piece();
  const typename Rule::Tensors tensors = batch.nodes[piece.node];
  std::int64_t q = piece.first + threadIdx.x;
  typename Rule::State state{};
  Group4 g{};
  const auto read = [&] {
    if (q >= piece.last) return;
    state = Rule::read(tensors, q);
    g = load_group4(tensors.g, q);
  };
  read();
  if (threadIdx.x == 0) shared[0] = rule.factors();
  __syncthreads();
  const typename Rule::Factors factors = shared[0];
  for (; q < piece.last; q += kPieceBlock, read()) {
    rule.update(tensors, factors, q, state, {g});
  }
}

// The updates of one parameter or of several.
template <class Rule>
struct Update {
  using Tensors = typename Rule::Tensors;
  static_assert(sizeof(Rule) + sizeof(Batch<Tensors, kManyNodes>) <= kMostParameters);

  Rule rule;
  std::vector<Binding> nodes;

  bool goes_with(const Update& other) const { return rule == other.rule; }
  void append(const Binding& node) { nodes.push_back(node); }
  void operator()() const {
    in_batches<Tensors>(nodes, [&](std::span<const Binding> some, auto capacity) {
      constexpr int kNodes = decltype(capacity)::value;
      std::int64_t groups4 = 0;
      for (const Binding& node : some) groups4 += Rule::tensors(node).groups4();
      const std::int64_t turns = ceil_div(groups4, kPieceBlock * kUpdateBlocks);
      Batch<Tensors, kNodes> batch(kPieceBlock * std::max<std::int64_t>(turns, 1));
      for (const Binding& node : some) batch.append(Rule::tensors(node));
      launch(update<Rule, kNodes>, {batch.blocks(), kPieceBlock}, rule, batch);
    });
  }
};

// A block works on a piece of a table, of whose gradient rows are given.
template <class Rule>
__global__ void __launch_bounds__(kPieceBlock)
    update_table(Rule rule, typename Rule::Tensors tensors, TableRows rows, Sparing sparing) {
  __shared__ Shared<typename Rule::Factors, 1> shared;
  if (threadIdx.x == 0) shared[0] = rule.factors();
  const Piece piece = piece_of(tensors.groups4(), kRowsPiece);
  const TableRows::Range near = rows.range_of(piece);  // with a barrier
  const typename Rule::Factors factors = shared[0];
  for (std::int64_t q = piece.first + threadIdx.x; q < piece.last; q += kPieceBlock) {
    Change change{};
    const unsigned found = rows.read(q, near, change.g);
    if (sparing != Sparing::kNone) change.taken = found;
    if (sparing == Sparing::kInPlace && found == 0) continue;
    rule.update(tensors, factors, q, Rule::read(tensors, q), change);
  }
}

// Whether every output lies over its own input; those are p and the states, in the same order.
bool is_in_place(const Binding& b) {
  std::size_t output = 0;
  for (std::size_t i = 0; i < b.inputs.size(); ++i) {
    const bool is_own =
        i != UpdateInput::kG && b.inputs[i] && b.inputs[i].type == b.inputs[UpdateInput::kP].type;
    if (is_own && b.inputs[i].data != b.outputs[output++].data) return false;
  }
  return true;
}

template <class Rule>
void run_by_rows(const Rule& rule, const Binding& b, bool spares) {
  const typename Rule::Tensors tensors = Rule::tensors(b);
  const TableRows rows(b.inputs[UpdateInput::kG], b.inputs.back());
  const Sparing sparing = !spares          ? Sparing::kNone
                          : is_in_place(b) ? Sparing::kInPlace
                                           : Sparing::kCopied;
  launch(update_table<Rule>, {ceil_div(tensors.groups4(), kRowsPiece), kPieceBlock}, rule, tensors,
         rows, sparing);
}

template <class Rule, class Attrs>
Prepared prepare_update(const NodeContext& context, bool spares) {
  const auto& attrs = context.attrs<Attrs>();
  if (context.has(Rule::In::kIds)) {
    return kernel_of([=](const Binding& b) { run_by_rows(Rule(attrs, b), b, spares); });
  }
  return {[attrs](const Binding& b) -> Kernel { return Update<Rule>{{attrs, b}, {b}}; }};
}

}  // namespace

Prepared prepare_sgd_step(const NodeContext& context) {
  const bool spares = spares_rows(context.attrs<SgdAttrs>(), context.has(SgdInput::kU));
  return prepare_update<Sgd, SgdAttrs>(context, spares);
}

Prepared prepare_adam_step(const NodeContext& context) {
  return prepare_update<Adam, AdamAttrs>(context, spares_rows(context.attrs<AdamAttrs>()));
}

Prepared prepare_adagrad_step(const NodeContext& context) {
  return prepare_update<Adagrad, AdagradAttrs>(context, spares_rows(context.attrs<AdagradAttrs>()));
}

Prepared prepare_rmsprop_step(const NodeContext& context) {
  return prepare_update<Graves, GravesAttrs>(context, spares_rows(context.attrs<GravesAttrs>()));
}

bool is_update(const Kernel& kernel) {
  return kernel.target<Update<Adam>>() || kernel.target<Update<Sgd>>() ||
         kernel.target<Update<Adagrad>>() || kernel.target<Update<Graves>>();
}

bool join_updates(Kernel& a, const Kernel& b) {
  return join<Update<Adam>>(a, b) || join<Update<Sgd>>(a, b) || join<Update<Adagrad>>(a, b) ||
         join<Update<Graves>>(a, b);
}

}  // namespace keel::cuda
