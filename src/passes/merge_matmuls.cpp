// Sums of products a_1^T d_1 + a_2^T d_2 + ... become one product of the joined factors,
// (a_1; a_2; ...)^T (d_1; d_2; ...). The gradient of a weight that is used at many time steps is
// such a sum: as one product it writes the gradient once, where T products and T - 1 sums of
// matrices write and read it about four times each.
#include <map>

#include "src/ops/elementwise.h"
#include "src/ops/layout.h"
#include "src/ops/matmul.h"
#include "src/passes/pipeline.h"
#include "src/passes/rewrite.h"

namespace keel {
namespace {

using In = MatmulInput;

// Two or three products and their sums are 3 or 5 kernels, and one product with the joining of its
// two factors is 3 as well. From four on there are fewer than half as many, which is why siamese
// and tied weights, which are used two or three times, stay as they are.
constexpr std::size_t kLeastProducts = 4;

// The terms of a tree of additions, from left to right.
struct Sum {
  std::vector<Value> products;  // merged
  std::vector<Value> others;
};

class ProductMerger {
 public:
  explicit ProductMerger(const Graph& source)
      : rewriter_(source), uses_(count_uses(source)), live_(find_live(source)), absorbed_(source) {}

  Graph run() {
    find_sums();
    return rewriter_.run([&](int i) {
      if (const auto sum = sums_.find(i); sum != sums_.end()) return emit(i, sum->second);
      if (!absorbed_[i]) rewriter_.copy(i);
    });
  }

 private:
  // Goes from the back, so that a sum is met before the sums that it is made of.
  void find_sums() {
    const Graph& g = rewriter_.source();
    PerNode<bool> is_inner(g);
    for (int i = g.size() - 1; i >= 0; --i) {
      if (!live_[i] || is_inner[i] || !is_sum(i)) continue;
      std::vector<int> inner;
      const Sum sum = sum_of(i, inner);
      for (int node : inner) is_inner[node] = true;
      if (!is_worth_it(sum)) continue;
      for (int node : inner) absorbed_[node] = true;
      for (Value product : sum.products) absorbed_[product.node] = true;
      sums_[i] = sum;
    }
  }

  // An addition that stretches neither operand.
  bool is_sum(int index) const {
    const Graph& g = rewriter_.source();
    const Node& node = g.node(index);
    return node.op == &elementwise_op(EwCode::kAdd) &&
           g.type(node.inputs[BinaryInput::kA]) == node.outputs[0] &&
           g.type(node.inputs[BinaryInput::kB]) == node.outputs[0];
  }

  // a^T d that only the sum reads.
  bool is_product(Value v) const {
    const Node& node = rewriter_.source().node(v);
    if (node.op != &kMatmul || uses_[v] != 1 || node.inputs[In::kBias].valid()) return false;
    const auto& attrs = node.attrs.as<MatmulAttrs>();
    const bool is_flat = rewriter_.source().shape(node.inputs[In::kA]).rank() == 2;
    return is_flat && attrs.transpose_a && !attrs.transpose_b &&
           attrs.activation == Activation::kNone;
  }

  // Lists additions below the one at `root` that nobody else reads as `inner`.
  Sum sum_of(int root, std::vector<int>& inner) const {
    const Graph& g = rewriter_.source();
    Sum sum;
    std::vector<Value> left;  // the next one last
    const auto push_operands = [&](int index) {
      left.push_back(g.node(index).inputs[BinaryInput::kB]);
      left.push_back(g.node(index).inputs[BinaryInput::kA]);
    };
    push_operands(root);
    while (!left.empty()) {
      const Value v = left.back();
      left.pop_back();
      if (uses_[v] == 1 && is_sum(v.node)) {
        inner.push_back(v.node);
        push_operands(v.node);
      } else {
        (is_product(v) ? sum.products : sum.others).push_back(v);
      }
    }
    return sum;
  }

  // Joining reads and writes every element of the factors once. Merging saves, for each product but
  // one, that its result is written, and that a sum reads two matrices and writes a third.
  bool is_worth_it(const Sum& sum) const {
    const std::size_t count = sum.products.size();
    if (count < kLeastProducts) return false;
    const Graph& g = rewriter_.source();
    const Shape& result = g.shape(sum.products[0]);
    std::int64_t rows = 0;
    for (Value v : sum.products) rows += g.shape(g.node(v).inputs[In::kA])[0];
    const std::int64_t joined = rows * (result[0] + result[1]);
    return 2 * joined <= 4 * std::int64_t(count - 1) * result.elements();
  }

  void emit(int index, const Sum& sum) {
    Graph& g = rewriter_.target();
    const std::string name = rewriter_.source().node(index).name;
    const Value a = joined(name, sum.products, In::kA), d = joined(name, sum.products, In::kB);
    const MatmulAttrs attrs{.transpose_a = true};
    if (sum.others.empty()) return rewriter_.replace(index, kMatmul, {a, d, {}}, attrs);
    Value total;
    {
      const auto scope = g.scope(name);
      total = g.add(kMatmul, {a, d, {}}, attrs);
      for (std::size_t i = 0; i + 1 < sum.others.size(); ++i) {
        total = ops::add(g, total, rewriter_(sum.others[i]));
      }
    }
    const Value last = rewriter_(sum.others.back());
    rewriter_.replace(index, elementwise_op(EwCode::kAdd), {total, last}, {});
  }

  // The factors a or b of the products, one below the other. Two weights that are read at the same
  // steps, such as those of a cell's input and of its state, share their second factor.
  Value joined(const std::string& name, const std::vector<Value>& products, In::Place factor) {
    std::vector<Value> parts;
    for (Value v : products) {
      parts.push_back(rewriter_(rewriter_.source().node(v).inputs[factor]));
    }
    Value& place = joined_[parts];
    const auto scope = rewriter_.target().scope(name);
    if (!place.valid()) place = ops::concat(rewriter_.target(), parts, 0);
    return place;
  }

  Rewriter rewriter_;
  PerValue<int> uses_;
  PerNode<bool> live_, absorbed_;
  std::map<int, Sum> sums_;  // by node of the last addition
  std::map<std::vector<Value>, Value> joined_;
};

}  // namespace

Graph merge_matmuls(const Graph& graph) { return ProductMerger(graph).run(); }

}  // namespace keel
