#include "tests/support/random_graph.h"

#include <algorithm>

#include "src/autodiff/gradient.h"
#include "src/ops/elementwise.h"
#include "src/ops/layout.h"
#include "src/ops/matmul.h"
#include "src/ops/optimizer_step.h"
#include "src/ops/reduce.h"

namespace keel::test {
namespace {

void normal(Tensor& t, const Philox& random) {
  std::uint64_t element = 0;
  for (double& x : t.as<double>()) x = random.normal(element++);
}

class Builder {
 public:
  explicit Builder(std::uint64_t seed) : random_(seed, stream_of("random_graph")) {}

  RandomGraph build(int ops) {
    const int inputs = 1 + below(2), parameters = 1 + below(2), states = below(3);
    for (int i = 0; i < inputs; ++i) add_input(i);
    for (int i = 0; i < parameters; ++i) add_parameter(shape());
    for (int i = 0; i < states; ++i) {
      states_.push_back(g_.state(fmt::format("s{}", i), {DType::kF64, shape()}, normal));
      pool_.push_back(states_.back());
    }
    for (int i = 0; i < ops; ++i) pool_.push_back(any_op());
    finish();
    return {std::move(g_), std::move(feeds_)};
  }

 private:
  int below(int n) { return int(random_.below(sampled_++, std::uint32_t(n))); }
  bool coin() { return below(2) == 0; }
  double number() { return (below(9) - 4) * 0.25; }  // exact in binary
  Value pick() { return pool_[std::size_t(below(int(pool_.size())))]; }

  Shape shape() {
    std::vector<std::int64_t> sizes(std::size_t(below(4)));
    for (std::int64_t& size : sizes) size = 1 + below(3);
    return Shape(sizes);
  }

  void add_input(int i) {
    const TensorType type{DType::kF64, shape()};
    const std::string name = fmt::format("x{}", i);
    pool_.push_back(g_.input(name, type));
    leaves_.push_back(pool_.back());
    feeds_[name] = Tensor(type);
    normal(feeds_[name], Philox(sampled_, 1));
  }

  Value add_parameter(const Shape& s) {
    const std::string name = fmt::format("w{}", parameters_.size());
    parameters_.push_back(g_.parameter(name, {DType::kF64, s}, normal));
    leaves_.push_back(parameters_.back());
    pool_.push_back(parameters_.back());
    return parameters_.back();
  }

  // A value in (-1, 1), for ops whose results would grow.
  Value bounded() { return ops::tanh(g_, pick()); }

  // A value that broadcasts with v.
  Value partner(Value v) {
    for (int attempt = 0; attempt < 8; ++attempt) {
      const Value other = pick();
      try {
        broadcast(g_.shape(v), g_.shape(other));
        return other;
      } catch (const Error&) {
      }
    }
    return g_.constant(number(), DType::kF64);
  }

  Value any_op() {
    switch (below(11)) {
      case 0:
      case 1:
        return unary();
      case 2:
      case 3:
        return binary();
      case 4:
        return reduction();
      case 5:
        return layout();
      case 6:
        return product();
      case 7:
        return constant_chain();
      case 8:
        return part();
      case 9:
        return whole_and_part();
      default:
        return ops::scale(g_, coin() ? ops::scale(g_, pick(), number(), number()) : pick(),
                          coin() ? 1 : number(), coin() ? 0 : number());
    }
  }

  Value unary() {
    using Op = Value (*)(Graph&, Value);
    constexpr Op kOps[] = {ops::neg,     ops::abs,  ops::relu,    ops::tanh,
                           ops::sigmoid, ops::gelu, ops::softplus};
    if (below(4) == 0) return coin() ? ops::exp(g_, bounded()) : ops::square(g_, bounded());
    return kOps[below(7)](g_, pick());
  }

  Value binary() {
    const Value a = pick(), b = partner(a);
    switch (below(7)) {
      case 0:
        return ops::add(g_, a, b);
      case 1:
        return ops::sub(g_, b, a);
      case 2:
        return ops::mul(g_, ops::tanh(g_, a), b);
      case 3:
        return ops::div(g_, a, ops::scale(g_, ops::sigmoid(g_, b), 1, 0.5));
      case 4:
        return ops::maximum(g_, a, b);
      case 5:
        return ops::minimum(g_, a, b);
      default:
        return ops::select(g_, ops::less(g_, a, b), b, a);
    }
  }

  Value reduction() {
    const Value v = pick();
    std::vector<std::int64_t> axes;
    const int rank = g_.shape(v).rank();
    if (rank > 0 && coin()) axes.push_back(below(rank));
    const bool keep_dims = coin();
    if (below(3) == 0) return ops::max(g_, v, axes, keep_dims);
    return coin() ? ops::sum(g_, v, axes, keep_dims) : ops::mean(g_, v, axes, keep_dims);
  }

  // One of the parts of a value, short, or long enough to stay where it lies.
  Value part() {
    const Value v = pick();
    const Shape s = g_.shape(v);
    if (s.rank() > 0 && coin()) {
      const auto parts = ops::split(g_, v, s[0]);
      return parts[std::size_t(below(int(parts.size())))];
    }
    const Value wide = ops::broadcast_to(g_, ops::sum(g_, ops::tanh(g_, v)), {3, 8});
    const auto parts = ops::split(g_, wide, 3);
    pool_.push_back(ops::scale(g_, parts[std::size_t(below(3))], number(), number()));
    return parts[std::size_t(below(3))];
  }

  // Something of a value and of a part that lies in it: rows of 8 numbers stay where they are.
  Value whole_and_part() {
    Tensor ramp(DType::kF64, {4, 8});
    for (std::size_t i = 0; i < 32; ++i) ramp.as<double>()[i] = double(i) / 16 - 1;
    const Value start = ops::add(g_, ops::mean(g_, bounded()), g_.constant(std::move(ramp)));
    const Value whole = coin() ? ops::exp(g_, start) : ops::neg(g_, start);
    const Value part = ops::split(g_, whole, 4)[std::size_t(below(4))];
    switch (below(4)) {
      case 0:
        return coin() ? ops::mul(g_, whole, part) : ops::sub(g_, part, whole);
      case 1: {
        const Value changed = ops::neg(g_, part);
        return ops::add(g_, whole, changed);
      }
      case 2:
        return ops::select(g_, ops::less(g_, whole, part), part, whole);
      default: {
        const Value flat = ops::reshape(g_, whole, {32}), row = ops::reshape(g_, part, {8});
        const Value changed = ops::tanh(g_, ops::split(g_, flat, 4)[std::size_t(below(4))]);
        return ops::add(g_, changed, coin() ? row : ops::split(g_, flat, 4)[0]);
      }
    }
  }

  Value layout() {
    const Value v = pick();
    const Shape s = g_.shape(v);
    if (coin()) {
      const Value flat = ops::reshape(g_, v, Shape{s.elements()});
      return coin() ? flat : ops::reshape(g_, flat, Shape{1, s.elements()});
    }
    if (s.rank() > 0 && coin()) {
      std::vector<std::int64_t> axes;
      for (int i = s.rank() - 1; i >= 0; --i) axes.push_back(i);
      return ops::transpose(g_, v, axes);
    }
    return ops::broadcast_to(g_, v, s.rank() < 3 ? broadcast(s, Shape{2, 1, 1}) : s);
  }

  // relu(a b + bias), with or without its parts.
  Value product() {
    Value a = bounded();
    const Shape s = g_.shape(a);
    if (s.rank() < 2) a = ops::reshape(g_, a, Shape{1, s.elements()});
    const std::int64_t n = 1 + below(3);
    Value y = ops::matmul(g_, a, add_parameter({g_.shape(a).back(), n}));
    if (coin()) y = ops::add(g_, y, add_parameter({n}));
    return coin() ? ops::relu(g_, y) : y;
  }

  Value constant_chain() {
    const Value c = ops::scale(g_, g_.constant(number(), DType::kF64), 2, 0.5);
    const Value v = pick();
    return coin() ? ops::add(g_, v, ops::exp(g_, c)) : ops::mul(g_, ops::tanh(g_, v), c);
  }

  void finish() {
    Value loss = g_.constant(0.0, DType::kF64);
    for (int i = 0; i < 4; ++i) {
      loss = ops::add(g_, loss,
                      ops::mean(g_, ops::tanh(g_, pool_[pool_.size() - 1 - std::size_t(i)])));
    }
    g_.mark_output("loss", loss);
    // A leaf that is updated shows its next value; outputs are taken from ops.
    const Value seen = ops::neg(g_, pick());
    g_.mark_output("seen", seen);
    g_.mark_output("reshaped", ops::reshape(g_, seen, Shape{g_.shape(seen).elements(), 1}));
    const std::vector<Value> d = gradient(g_, loss, leaves_);
    for (std::size_t i = 0; i < d.size(); ++i) {
      if (g_.node(d[i]).kind == NodeKind::kOp) g_.mark_output(fmt::format("d{}", i), d[i]);
    }
    for (std::size_t i = 0; i < d.size(); ++i) {
      if (g_.node(leaves_[i]).kind == NodeKind::kParameter) update_parameter(leaves_[i], d[i]);
    }
    for (Value s : states_) {
      const Value news = ops::sum_to(g_, ops::broadcast_to(g_, loss, g_.shape(s)), g_.shape(s));
      g_.mark_update(s, ops::add(g_, ops::scale(g_, s, 0.5), news));
    }
  }

  void update_parameter(Value p, Value dp) {
    if (below(3) == 0) return;
    const Value lr = g_.constant(0.125, DType::kF64);
    g_.mark_update(p, coin() ? ops::sgd_step(g_, {p, dp, lr, {}, {}}, {})
                             : ops::sub(g_, p, ops::mul(g_, dp, lr)));
  }

  Graph g_;
  Feeds feeds_;
  Philox random_;
  std::uint64_t sampled_ = 0;
  std::vector<Value> pool_, leaves_, parameters_, states_;
};

}  // namespace

RandomGraph random_graph(std::uint64_t seed, int ops) { return Builder(seed).build(ops); }

}  // namespace keel::test
