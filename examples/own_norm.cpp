// A norm of one's own, "l1norm": y = x / s, where s = eps + the mean of |x| over the last axis. Its
// backward is dx = (dy - sign(x) sum(dy x) / (n s)) / s.
//   own_norm gradcheck         its backward beside central differences
//   own_norm compare norm l1norm, own_norm train mnist_mlp --norm l1norm, and all that keel does
#include <keel/own_ops.h>
#include <keel/program.h>

#include <cstdio>

using namespace keel;
using compare::Err;

// The attributes of the op, and the options of the norm.
struct L1Norm {
  double eps = 1e-5;
  static constexpr bool kBatchType = false;
  static constexpr auto fields() { return std::tuple{field("eps", &L1Norm::eps)}; }
  void validate(const nn::OptionRanges& ranges) const { ranges.at_least(0.0, "eps", eps); }
  bool has_bias() const { return false; }
  Value apply(nn::NormStates& memory, Value x) const;
};

std::vector<TensorType> infer(const InferContext& c) {
  c.expect(c.shape(0).rank() >= 1, "x", "at least one axis", c.shape(0).text());
  if (c.inputs.size() > 1) c.expect_shape(1, "dy", c.shape(0));
  return {c.input(0)};
}
const OpInfo kBackward{
    .name = "l1_norm_backward", .inputs = {"x", "dy"}, .attrs = L1Norm{}, .infer = infer};
void backward(BackwardContext& c) {
  c.set(0, c.graph.add(kBackward, {c.input(0), c.grad()}, c.attrs()));
}
const OpInfo kForward{.name = "l1_norm",
                      .inputs = {"x"},
                      .attrs = L1Norm{},
                      .infer = infer,
                      .backward = backward,
                      .gradient = GradientKind::kExact};

Value L1Norm::apply(nn::NormStates& memory, Value x) const {
  return memory.graph.add(kForward, {x}, *this);
}

double sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }
double sign(const Err& x) { return sign(x.value); }
template <class T>
T number(double x) {
  return T(x);
}
template <>
Err number(double x) {
  return compare::constant(x);
}  // float32 may have to round it

// One row of n elements, forward without dy, in any arithmetic: double is the reference, float the
// kernel for CPUs, and Err carries along what rounding may add, which gives the bound of compare.
template <class T>
void row(std::int64_t n, const T* x, const T* dy, T* out, double eps) {
  T sum = T(0), dot = T(0);
  for (std::int64_t i = 0; i < n; ++i) sum = sum + T(sign(x[i])) * x[i];
  for (std::int64_t i = 0; dy && i < n; ++i) dot = dot + dy[i] * x[i];
  const T s = sum / number<T>(double(n)) + number<T>(eps);
  for (std::int64_t i = 0; i < n; ++i) {
    out[i] = dy ? (dy[i] - T(sign(x[i])) * (dot / (number<T>(double(n)) * s))) / s : x[i] / s;
  }
}

template <class T>
Prepared prepare(const NodeContext& c) {
  const auto [n, eps] = std::pair(c.input(0).shape.back(), c.attrs<L1Norm>().eps);
  return kernel_of([n, eps](const Binding& b) {
    const T *x = b.inputs[0].as<T>(), *dy = b.inputs.size() > 1 ? b.inputs[1].as<T>() : nullptr;
    T* out = b.outputs[0].as<T>();
    for (std::int64_t at = 0; at < b.inputs[0].elements(); at += n) {
      row(n, x + at, dy ? dy + at : nullptr, out + at, eps);
    }
  });
}

void bound(const compare::ComparedNode& node, compare::NodeBounds& bounds) {
  const std::int64_t n = node.input(0).shape().back();
  const std::vector<Err> x(node.in(0).begin(), node.in(0).end());
  std::vector<Err> dy, out(x.size());
  if (node.has(1)) dy.assign(node.in(1).begin(), node.in(1).end());
  for (std::int64_t at = 0; at < std::ssize(x); at += n) {
    row(n, &x[at], dy.empty() ? nullptr : &dy[at], &out[at], node.attrs<L1Norm>().eps);
  }
  for (std::size_t e = 0; e < out.size(); ++e) bounds[0].as<double>()[e] = out[e].error;
}

int main(int argc, char** argv) {
  std::vector<Addition> own{norm_of<L1Norm>(
      {"l1norm", "y = x / (eps + mean |x|)", "-", "-", "exact", "examples/own_norm.cpp"})};
  for (const OpInfo* op : {&kForward, &kBackward}) {
    own.push_back(op_of({op, {{"reference", prepare<double>}, {"onednn", prepare<float>}}, bound}));
  }
  if (argc != 2 || std::string(argv[1]) != "gradcheck") return program(argc, argv, own);
  for (const Addition& addition : own) addition.enter();
  compare::OpCase op_case{.inputs = {}, .build = [](Graph& g, const std::vector<Value>& inputs) {
                            return std::vector<Value>{g.add(kForward, {inputs[0]}, L1Norm{})};
                          }};
  op_case.inputs.push_back(compare::random_normal({3, 7}, 1));
  const double error = compare::gradient_error(*make_backend("reference"), op_case);
  std::printf("l1norm: off by %.2g of the gradient\n", error);
  return error < 1e-7 ? 0 : 1;
}
