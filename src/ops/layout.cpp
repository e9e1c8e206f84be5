#include "src/ops/layout.h"

namespace keel {
namespace {

using Types = std::vector<TensorType>;
using Sizes = std::vector<std::int64_t>;

Types infer_reshape(const InferContext& c) {
  const Shape& shape = c.attrs.as<ReshapeAttrs>().shape;
  c.expect(shape.elements() == c.shape(0).elements(), "x",
           fmt::format("{} elements for {}", shape.elements(), shape.text()), c.shape(0).text());
  return {{c.dtype(0), shape}};
}

Types infer_transpose(const InferContext& c) {
  const Sizes& axes = c.attrs.as<TransposeAttrs>().axes;
  Sizes sizes(axes.size(), 0), seen(axes.size(), 0);
  bool holds = int(axes.size()) == c.shape(0).rank();
  for (std::size_t i = 0; holds && i < axes.size(); ++i) {
    holds = axes[i] >= 0 && axes[i] < int(axes.size()) && seen[std::size_t(axes[i])]++ == 0;
    if (holds) sizes[i] = c.shape(0)[static_cast<int>(axes[i])];
  }
  c.expect(holds, "axes", "each axis of " + c.shape(0).text() + " once", attr_text(axes));
  return {{c.dtype(0), Shape(sizes)}};
}

Types infer_slice(const InferContext& c) {
  const auto& [starts, sizes] = c.attrs.as<SliceAttrs>();
  const Shape& x = c.shape(0);
  bool holds = int(starts.size()) == x.rank() && sizes.size() == starts.size();
  for (int i = 0; holds && i < x.rank(); ++i) {
    const std::int64_t start = starts[std::size_t(i)], size = sizes[std::size_t(i)];
    holds = start >= 0 && size >= 0 && start <= x[i] && size <= x[i] - start;
  }
  c.expect(holds, "range", "a part of " + x.text(), c.attrs.text());
  return {{c.dtype(0), Shape(sizes)}};
}

Types infer_split(const InferContext& c) {
  const std::int64_t parts = c.attrs.as<SplitAttrs>().parts;
  const Shape& x = c.shape(0);
  c.expect(x.rank() > 0 && parts > 0 && x[0] % parts == 0, "parts",
           "a divisor of the first axis of " + x.text(), fmt::format("{}", parts));
  return Types(std::size_t(parts), {c.dtype(0), x.with(0, x[0] / parts)});
}

Types infer_concat(const InferContext& c) {
  const Shape& first = c.shape(0);
  const int axis = first.resolve_axis(static_cast<int>(c.attrs.as<ConcatAttrs>().axis));
  std::int64_t total = 0;
  for (int i = 0; i < int(c.inputs.size()); ++i) {
    c.expect_dtype(i, "type of a part", c.dtype(0));
    const bool same_rank = c.shape(i).rank() == first.rank();
    c.expect(same_rank && c.shape(i).with(axis, first[axis]) == first, "part",
             fmt::format("{} except along axis {}", first.text(), axis), c.shape(i).text());
    total += c.shape(i)[axis];
  }
  return {{c.dtype(0), first.with(axis, total)}};
}

Types infer_pad(const InferContext& c) {
  const auto& attrs = c.attrs.as<PadAttrs>();
  Shape shape = c.shape(0);
  const auto rank = std::size_t(shape.rank());
  bool holds = attrs.before.size() == rank && attrs.after.size() == rank;
  for (std::size_t i = 0; holds && i < rank; ++i) {
    holds = attrs.before[i] >= 0 && attrs.after[i] >= 0;
    shape = shape.with(int(i), shape[int(i)] + attrs.before[i] + attrs.after[i]);
  }
  c.expect(holds, "padding", fmt::format("{} sizes >= 0", rank), c.attrs.text());
  return {{c.dtype(0), shape}};
}

void backward_reshape(BackwardContext& c) {
  c.set(0, ops::reshape(c.graph, c.grad(), c.graph.shape(c.input(0))));
}

void backward_transpose(BackwardContext& c) {
  const Sizes& axes = c.attrs().as<TransposeAttrs>().axes;
  Sizes inverse(axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i) inverse[std::size_t(axes[i])] = std::int64_t(i);
  c.set(0, ops::transpose(c.graph, c.grad(), inverse));
}

void backward_slice(BackwardContext& c) {
  const auto& [starts, sizes] = c.attrs().as<SliceAttrs>();
  const Shape& x = c.graph.shape(c.input(0));
  Sizes after(starts.size());
  for (std::size_t i = 0; i < after.size(); ++i) after[i] = x[int(i)] - starts[i] - sizes[i];
  c.set(0, ops::pad(c.graph, c.grad(), starts, after));
}

// A part that nothing depends on has the gradient 0.
void backward_split(BackwardContext& c) {
  const auto parts = int(c.attrs().as<SplitAttrs>().parts);
  Value zero;
  std::vector<Value> gradients;
  for (int i = 0; i < parts; ++i) {
    gradients.push_back(c.grad(i));
    if (gradients.back().valid()) continue;
    if (!zero.valid()) zero = c.graph.constant(Tensor(c.graph.type(c.output(i))));
    gradients.back() = zero;
  }
  c.set(0, ops::concat(c.graph, gradients, 0));
}

// Parts of one size along the first axis, which split gives back.
bool is_stack(const BackwardContext& c, int axis) {
  bool holds = axis == 0 && c.input(1).valid();
  for (int i = 1; holds && c.input(i).valid(); ++i) {
    holds = c.graph.type(c.input(i)) == c.graph.type(c.input(0));
  }
  return holds;
}

void backward_stack(BackwardContext& c) {
  const Shape &whole = c.graph.shape(c.grad()), &part = c.graph.shape(c.input(0));
  const std::vector<Value> parts = ops::split(c.graph, c.grad(), whole[0] / part[0]);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (c.needs(int(i))) c.set(int(i), parts[i]);
  }
}

void backward_concat(BackwardContext& c) {
  const int axis = static_cast<int>(c.attrs().as<ConcatAttrs>().axis);
  if (is_stack(c, axis)) return backward_stack(c);
  std::int64_t start = 0;
  for (int i = 0; c.input(i).valid(); ++i) {
    const std::int64_t size = c.graph.shape(c.input(i))[axis];
    if (c.needs(i)) c.set(i, ops::slice_axis(c.graph, c.grad(), axis, start, size));
    start += size;
  }
}

void backward_pad(BackwardContext& c) {
  const Shape& x = c.graph.shape(c.input(0));
  const Sizes sizes(x.sizes().begin(), x.sizes().end());
  c.set(0, ops::slice(c.graph, c.grad(), c.attrs().as<PadAttrs>().before, sizes));
}

}  // namespace

const OpInfo kReshape{.name = "reshape",
                      .inputs = {{"x", kAnyType}},
                      .attrs = ReshapeAttrs{},
                      .infer = infer_reshape,
                      .backward = backward_reshape,
                      .gradient = GradientKind::kExact,
                      .view = View::kWhole};
const OpInfo kTranspose{.name = "transpose",
                        .inputs = {{"x", kAnyType}},
                        .attrs = TransposeAttrs{},
                        .infer = infer_transpose,
                        .backward = backward_transpose,
                        .gradient = GradientKind::kExact};
const OpInfo kSlice{.name = "slice",
                    .inputs = {{"x", kAnyType}},
                    .attrs = SliceAttrs{},
                    .infer = infer_slice,
                    .backward = backward_slice,
                    .gradient = GradientKind::kExact};
const OpInfo kSplit{.name = "split",
                    .inputs = {{"x", kAnyType}},
                    .attrs = SplitAttrs{},
                    .infer = infer_split,
                    .backward = backward_split,
                    .gradient = GradientKind::kExact,
                    .view = View::kParts};
const OpInfo kConcat{.name = "concat",
                     .inputs = {{"part", kAnyType}},
                     .attrs = ConcatAttrs{},
                     .infer = infer_concat,
                     .backward = backward_concat,
                     .gradient = GradientKind::kExact};
const OpInfo kPad{.name = "pad",
                  .inputs = {{"x", kAnyType}},
                  .attrs = PadAttrs{},
                  .infer = infer_pad,
                  .backward = backward_pad,
                  .gradient = GradientKind::kExact};

namespace ops {

Value reshape(Graph& g, Value x, const Shape& shape) {
  return g.shape(x) == shape ? x : g.add(kReshape, {x}, ReshapeAttrs{shape});
}

Value transpose(Graph& g, Value x, std::vector<std::int64_t> axes) {
  return g.add(kTranspose, {x}, TransposeAttrs{std::move(axes)});
}

Value slice(Graph& g, Value x, std::vector<std::int64_t> starts, std::vector<std::int64_t> sizes) {
  return g.add(kSlice, {x}, SliceAttrs{std::move(starts), std::move(sizes)});
}

Value slice_axis(Graph& g, Value x, int axis, std::int64_t start, std::int64_t size) {
  const Shape& shape = g.shape(x);
  Sizes starts(std::size_t(shape.rank()), 0), sizes(shape.sizes().begin(), shape.sizes().end());
  const auto i = std::size_t(shape.resolve_axis(axis));
  starts[i] = start;
  sizes[i] = size;
  return slice(g, x, starts, sizes);
}

std::vector<Value> split(Graph& g, Value x, std::int64_t parts) {
  if (parts == 1) return {x};
  const Value first = g.add(kSplit, {x}, SplitAttrs{parts});
  std::vector<Value> values;
  for (int i = 0; i < int(parts); ++i) values.push_back(first.at(i));
  return values;
}

Value concat(Graph& g, const std::vector<Value>& parts, int axis) {
  check(!parts.empty(), ErrorKind::kUsage, "[concat] parts: expected at least one, got none");
  return g.add(kConcat, parts, ConcatAttrs{g.shape(parts[0]).resolve_axis(axis)});
}

Value pad(Graph& g, Value x, std::vector<std::int64_t> before, std::vector<std::int64_t> after,
          double value) {
  return g.add(kPad, {x}, PadAttrs{std::move(before), std::move(after), value});
}

}  // namespace ops
}  // namespace keel
