// Stores a matrix that is the second factor of many products once, in panels.
//
// Without this pass, a backend's product copies such a matrix into its own order, or reads it
// slowly in place. One copy serves all products if few rows meet the matrix at each of many time
// steps: the weight of a recurrent layer, forward and transposed in the backward, and the common
// second factor of the gradients of two weights, those of input and state.
#include <array>
#include <map>
#include <tuple>

#include "src/ops/layout.h"
#include "src/passes/pipeline.h"
#include "src/passes/rewrite.h"

namespace keel {
namespace {

using In = MatmulInput;

// Cutting reads and writes the matrix once. What a product gains by panels grows with its rows, and
// has paid for the cutting after about so many of them: see bench/results/products.md.
constexpr std::int64_t kLeastReaders = 2;
constexpr std::int64_t kLeastSharedRows = 256;

// The matrix b (k, n), or (n, k) if transposed, cut into panels.
Value cut(Graph& g, Value b, bool transposed, const PackedLayout& form) {
  const Shape& stored = g.shape(b);
  const std::int64_t k = stored[transposed ? 1 : 0], n = stored[transposed ? 0 : 1];
  const Shape panels = form.shape(k, n);
  const std::int64_t count = panels[0], rows = panels[1];
  if (rows > k || count * form.width > n) {
    std::vector<std::int64_t> after{rows - k, count * form.width - n};
    if (transposed) std::swap(after[0], after[1]);
    b = ops::pad(g, b, {0, 0}, after);
  }
  const Shape shape = transposed ? Shape{count, form.width, rows} : Shape{rows, count, form.width};
  const auto axes =
      transposed ? std::vector<std::int64_t>{0, 2, 1} : std::vector<std::int64_t>{1, 0, 2};
  return ops::transpose(g, ops::reshape(g, b, shape), axes);
}

class PanelCutter {
 public:
  PanelCutter(const Graph& source, const ChoosePacking& choose)
      : rewriter_(source), choose_(choose) {
    const PerNode<bool> live = find_live(source);
    for (int i = 0; i < source.size(); ++i) {
      if (!live[i] || !may_read_packed(source.node(i))) continue;
      Shared& shared = shared_[key_of(i)];
      ++shared.products;
      shared.rows += rows_of(i);
    }
  }

  Graph run() {
    return rewriter_.run([&](int i) {
      const PackedLayout form = form_of(i);
      form.width > 0 ? emit(i, form) : rewriter_.copy(i);
    });
  }

 private:
  // Which matrix, and whether it is read transposed.
  using Key = std::tuple<Value, bool>;
  // Batch, m, k, n, both transpositions, activation, whether there is a bias.
  using Kind = std::array<std::int64_t, 8>;
  struct Shared {
    std::int64_t products = 0;
    std::int64_t rows = 0;
    PackedLayout form;  // of `panels`, which are valid once a product has asked for them
    Value panels;
  };

  // Rows of several matrices that are stored transposed are not one product.
  bool may_read_packed(const Node& node) const {
    if (node.op != &kMatmul || node.attrs.as<MatmulAttrs>().packed_columns > 0) return false;
    const bool is_flat = rewriter_.source().shape(node.inputs[In::kA]).rank() == 2;
    return is_flat || !node.attrs.as<MatmulAttrs>().transpose_a;
  }

  Key key_of(int index) const {
    const Node& node = rewriter_.source().node(index);
    return {node.inputs[In::kB], node.attrs.as<MatmulAttrs>().transpose_b};
  }

  MatmulSizes sizes_of(int index) const {
    const Graph& g = rewriter_.source();
    const Node& node = g.node(index);
    return matmul_sizes(g.shape(node.inputs[In::kA]), g.shape(node.inputs[In::kB]),
                        node.attrs.as<MatmulAttrs>());
  }
  std::int64_t rows_of(int index) const { return sizes_of(index).batch * sizes_of(index).m; }

  // How the node's b is to be cut; width 0: it is not.
  PackedLayout form_of(int index) {
    if (!may_read_packed(rewriter_.source().node(index))) return {};
    const MatmulSizes sizes = sizes_of(index);
    const Shared& shared = shared_.at(key_of(index));
    const bool is_worth_it = shared.products >= kLeastReaders && shared.rows >= kLeastSharedRows;
    if (!sizes.shared_b || sizes.k == 0 || sizes.n == 0 || !is_worth_it) return {};
    const PackedLayout form = chosen_for(index);
    const bool fits = !shared.panels.valid() || shared.form == form;
    return fits ? form : PackedLayout{};
  }

  // A backend takes its time to choose, and the time steps are alike.
  PackedLayout chosen_for(int index) {
    const Graph& g = rewriter_.source();
    const Node& node = g.node(index);
    const MatmulSizes sizes = sizes_of(index);
    const auto& attrs = node.attrs.as<MatmulAttrs>();
    const auto [place, is_new] = chosen_.try_emplace(
        Kind{sizes.batch, sizes.m, sizes.k, sizes.n, attrs.transpose_a, attrs.transpose_b,
             int(attrs.activation), node.inputs[In::kBias].valid()});
    if (is_new) place->second = choose_(g, node);
    return place->second;
  }

  void emit(int index, const PackedLayout& form) {
    Graph& g = rewriter_.target();
    const Node& node = rewriter_.source().node(index);
    MatmulAttrs attrs = node.attrs.as<MatmulAttrs>();
    Shared& shared = shared_.at(key_of(index));
    std::vector<Value> inputs = rewriter_.inputs_of(node);
    if (!shared.panels.valid()) {
      const auto scope = g.scope(rewriter_.source().node(node.inputs[In::kB]).name);
      shared.panels = cut(g, inputs[In::kB], attrs.transpose_b, form);
      shared.form = form;
    }
    inputs[In::kB] = shared.panels;
    attrs.transpose_b = false;
    attrs.packed_columns = sizes_of(index).n;
    rewriter_.replace(index, kMatmul, inputs, attrs);
  }

  Rewriter rewriter_;
  const ChoosePacking& choose_;
  std::map<Key, Shared> shared_;
  std::map<Kind, PackedLayout> chosen_;
};

}  // namespace

Graph pack_weights(const Graph& graph, const ChoosePacking& choose) {
  return PanelCutter(graph, choose).run();
}

}  // namespace keel
