#include "plugin/c/sums.h"

#include <algorithm>

#include "src/ops/elementwise.h"
#include "src/ops/norm/norm_ops.h"

namespace keel::plugin {
namespace {

// Places of inputs. The backward has sum in the place of x, and dsum as its last input.
constexpr int kX = 0, kResidual = 1;

bool is_backward(const SumOp& op) { return op.norm.forward != nullptr; }

const OpInfo& norm_op(std::string_view name) {
  const auto found = std::ranges::find(norm_ops(), name, [](const OpInfo* op) { return op->name; });
  check(found != norm_ops().end(), ErrorKind::kInternal, "no norm is called {}", name);
  return **found;
}

SumOp forward_op(std::string_view name, const OpInfo& norm) {
  SumOp op{{.name = name,
            .inputs = norm.inputs,
            .output_names = norm.output_names,
            .attrs = norm.attrs,
            .gradient = norm.gradient,
            .norm = norm.norm},
           norm};
  op.info.inputs.insert(op.info.inputs.begin() + kResidual, OpInput("residual"));
  op.info.output_names.push_back("sum");
  return op;
}

SumOp backward_op(std::string_view name, const OpInfo& norm) {
  SumOp op{
      {.name = name, .inputs = norm.inputs, .output_names = norm.output_names, .attrs = norm.attrs},
      norm};
  op.info.inputs[kX] = OpInput("sum");
  op.info.inputs.push_back(OpInput("dsum"));
  return op;
}

// Throws unless the input is given and has the type of the first one.
void expect_like_first(const Graph& graph, const OpInfo& op, std::span<const Value> inputs,
                       int place) {
  for (const int needed : {kX, place}) {
    check(inputs[std::size_t(needed)].valid(), ErrorKind::kUsage,
          "[{}] {}: expected an array, got none", op.name, input_name(op, needed));
  }
  const TensorType &first = graph.type(inputs[kX]), &type = graph.type(inputs[std::size_t(place)]);
  check(type == first, ErrorKind::kUsage, "[{}] {}: expected {}, as {} is, got {}", op.name,
        input_name(op, place), first.text(), input_name(op, kX), type.text());
}

// Appends the norm, or its backward, whose result is stored as its first input is.
Value add_norm(Graph& graph, const SumOp& op, std::vector<Value> inputs, const Attrs& attrs) {
  const bool is_bf16 = inputs[kX].valid() && graph.type(inputs[kX]).dtype == DType::kBF16;
  const Value result = graph.add(op.norm, std::move(inputs), attrs);
  if (is_bf16) graph.narrow_result(result);
  return result;
}

std::vector<Value> outputs_of(const Graph& graph, Value result) {
  std::vector<Value> outputs;
  for (int port = 0; port < int(graph.node(result).outputs.size()); ++port) {
    outputs.push_back(result.at(port));
  }
  return outputs;
}

}  // namespace

std::span<const SumOp> sum_ops() {
  static const SumOp ops[] = {
      forward_op("add_layer_norm", norm_op("layer_norm")),
      backward_op("add_layer_norm_backward", norm_op("layer_norm_backward")),
      forward_op("add_rms_norm", norm_op("rms_norm")),
      backward_op("add_rms_norm_backward", norm_op("rms_norm_backward"))};
  return ops;
}

const SumOp* find_sum_op(std::string_view name) {
  const auto found =
      std::ranges::find(sum_ops(), name, [](const SumOp& op) { return op.info.name; });
  return found == sum_ops().end() ? nullptr : &*found;
}

std::vector<Value> add_sum_op(Graph& graph, const SumOp& op, std::span<const Value> inputs,
                              const Attrs& attrs) {
  std::vector<Value> of_norm(inputs.begin(), inputs.end());
  if (is_backward(op)) {
    const int dsum = int(inputs.size()) - 1;
    of_norm.pop_back();
    const bool adds = inputs[std::size_t(dsum)].valid();
    if (adds) expect_like_first(graph, op.info, inputs, dsum);
    const Value dx = add_norm(graph, op, of_norm, attrs);
    std::vector<Value> outputs = outputs_of(graph, dx);
    if (adds) outputs[0] = ops::add(graph, dx, inputs[std::size_t(dsum)]);
    return outputs;
  }
  expect_like_first(graph, op.info, inputs, kResidual);
  const Value sum = ops::add(graph, inputs[kX], inputs[kResidual]);
  of_norm.erase(of_norm.begin() + kResidual);
  of_norm[kX] = sum;
  std::vector<Value> outputs = outputs_of(graph, add_norm(graph, op, of_norm, attrs));
  outputs.push_back(sum);
  return outputs;
}

}  // namespace keel::plugin
