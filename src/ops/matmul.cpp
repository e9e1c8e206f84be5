#include "src/ops/matmul.h"

#include "src/ops/layout.h"
#include "src/ops/product_type.h"
#include "src/ops/reduce.h"

namespace keel {
namespace {

using In = MatmulInput;

std::vector<std::int64_t> leading(const Shape& s) {
  return {s.sizes().begin(), s.sizes().end() - 2};
}

void expect_matrices(const InferContext& c, const MatmulAttrs& attrs) {
  const Shape &a = c.shape(In::kA), &b = c.shape(In::kB);
  c.expect(b.rank() >= 2, "b", "rank >= 2", b.text());
  c.expect(b.rank() == 2 || leading(a) == leading(b), "b",
           "two axes, or the batch axes of " + a.text(), b.text());
  const std::int64_t inner_a = a[attrs.transpose_a ? -2 : -1];
  const std::int64_t inner_b = b[attrs.transpose_b ? -1 : -2];
  c.expect(inner_a == inner_b, "inner size of b", fmt::format("{}", inner_a), b.text());
}

void expect_packed(const InferContext& c, const MatmulAttrs& attrs) {
  const Shape& b = c.shape(In::kB);
  const std::int64_t k = c.shape(In::kA)[attrs.transpose_a ? -2 : -1], n = attrs.packed_columns;
  c.expect(!attrs.transpose_b, "b", "panels that are not transposed", "transpose_b=true");
  const bool holds = b.rank() == 3 && b[2] > 0 && b[1] > 0 && b[1] >= k &&
                     b == PackedLayout{b[2], b[1]}.shape(k, n);
  c.expect(holds, "b", fmt::format("panels of a matrix ({}, {})", k, n), b.text());
}

std::vector<TensorType> infer(const InferContext& c) {
  const auto& attrs = c.attrs.as<MatmulAttrs>();
  const Shape &a = c.shape(In::kA), &b = c.shape(In::kB);
  c.expect_floating(In::kA, "a");
  c.expect_dtype(In::kB, "type of b", c.dtype(In::kA));
  c.expect(a.rank() >= 2, "a", "rank >= 2", a.text());
  attrs.packed_columns > 0 ? expect_packed(c, attrs) : expect_matrices(c, attrs);
  const MatmulSizes sizes = matmul_sizes(a, b, attrs);
  const DType result = product_type(c.dtype(In::kA));
  if (c.has(In::kBias)) {
    c.expect_shape(In::kBias, "bias", Shape{sizes.n});
    c.expect_dtype(In::kBias, "type of bias", result);
  }
  return {{result, a.with(-2, sizes.m).with(-1, sizes.n)}};
}

Value product(BackwardContext& c, Value a, Value b, bool transpose_a, bool transpose_b) {
  return ops::matmul(c.graph, a, b, {.transpose_a = transpose_a, .transpose_b = transpose_b});
}

// (..., m, n) as (batch * m, n), so that a shared matrix meets all rows in one product.
Value flat(BackwardContext& c, Value v) {
  const Shape& s = c.graph.shape(v);
  return ops::reshape(c.graph, v, Shape{s.elements(0, s.rank() - 1), s.back()});
}

// As y = op(a) op(b), the gradient is d op(a) = dy op(b)^T, transposed back when a was.
void set_da(BackwardContext& c, const MatmulAttrs& attrs, Value dy) {
  const Value b = c.input(In::kB);
  if (!attrs.transpose_a) {
    c.set(In::kA, product(c, dy, b, false, !attrs.transpose_b));
  } else if (c.graph.shape(b).rank() == c.graph.shape(dy).rank()) {
    c.set(In::kA, product(c, b, dy, attrs.transpose_b, true));
  } else {
    const Value da = product(c, dy, b, false, !attrs.transpose_b);
    std::vector<std::int64_t> axes;
    for (int i = 0; i < c.graph.shape(da).rank(); ++i) axes.push_back(i);
    std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
    c.set(In::kA, ops::transpose(c.graph, da, axes));
  }
}

// d op(b) = op(a)^T dy.
void set_db(BackwardContext& c, const MatmulAttrs& attrs, Value dy) {
  Value a = c.input(In::kA);
  const bool shared = c.graph.shape(c.input(In::kB)).rank() < c.graph.shape(dy).rank();
  if (shared && !attrs.transpose_a) {
    a = flat(c, a);
    dy = flat(c, dy);
  }
  Value db = attrs.transpose_b ? product(c, dy, a, true, attrs.transpose_a)
                               : product(c, a, dy, !attrs.transpose_a, false);
  c.set(In::kB, ops::sum_to(c.graph, db, c.graph.shape(c.input(In::kB))));
}

void backward(BackwardContext& c) {
  const auto& attrs = c.attrs().as<MatmulAttrs>();
  check(attrs.activation == Activation::kNone, ErrorKind::kUsage,
        "[matmul] gradients are built before activations are fused");
  check(attrs.packed_columns == 0, ErrorKind::kUsage,
        "[matmul] gradients are built before b is stored in panels");
  if (c.needs(In::kA) || c.needs(In::kB)) {
    const Value dy = as_factor(c.graph, c.grad(), c.input(In::kA));
    if (c.needs(In::kA)) set_da(c, attrs, dy);
    if (c.needs(In::kB)) set_db(c, attrs, dy);
  }
  if (c.needs(In::kBias)) c.set(In::kBias, ops::sum(c.graph, flat(c, c.grad()), {0}));
}

}  // namespace

MatmulSizes matmul_sizes(const Shape& a, const Shape& b, const MatmulAttrs& attrs) {
  MatmulSizes sizes{};
  sizes.batch = a.elements(0, a.rank() - 2);
  sizes.m = a[attrs.transpose_a ? -1 : -2];
  sizes.k = a[attrs.transpose_a ? -2 : -1];
  const bool is_packed = attrs.packed_columns > 0;
  sizes.n = is_packed ? attrs.packed_columns : b[attrs.transpose_b ? -2 : -1];
  sizes.shared_b = is_packed || b.rank() == 2;
  return sizes;
}

Shape PackedLayout::shape(std::int64_t k, std::int64_t n) const {
  const auto parts = [](std::int64_t size, std::int64_t part) { return (size + part - 1) / part; };
  return {parts(n, width), parts(k, row_multiple) * row_multiple, width};
}

const OpInfo kMatmul{.name = "matmul",
                     .inputs = {"a", "b", "bias"},
                     .attrs = MatmulAttrs{},
                     .infer = infer,
                     .backward = backward,
                     .gradient = GradientKind::kExact};

namespace ops {

Value matmul(Graph& g, Value a, Value b, const MatmulOptions& options) {
  return g.add(kMatmul, {a, b, options.bias},
               MatmulAttrs{options.transpose_a, options.transpose_b});
}

}  // namespace ops
}  // namespace keel
