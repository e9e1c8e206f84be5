// Errors that rounding may add to the outputs of any node: the bounds that backends have to keep.
// docs/numerics.md has the formulas and their origin.
#pragma once

#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "src/runtime/backend.h"

namespace keel::compare {

// The kernels that are compared. keel's own promise more than float32 arithmetic requires: sums in
// double, norms within 16 and 64 units. Any other kernel only has to stay within the effects of
// rounding, for any order of its sums and any way to form its statistics.
enum class Kernels { kKeel, kAny };

// A node as the reference has run it.
struct ComparedNode {
  Backend& reference;
  const Graph& graph;
  int index = 0;
  std::span<const Tensor* const> inputs;  // of the reference, in float64; null: absent
  std::span<const Tensor> outputs;        // before output 0 is rounded, where Node::is_bf16
  Kernels kernels = Kernels::kKeel;
  // How far each element of an input may be from the value that the program had there, in float64;
  // null or missing: the input is exactly the program's.
  std::span<const Tensor* const> input_errors = {};

  const Node& node() const { return graph.node(index); }
  bool has(int input) const {
    return input < int(inputs.size()) && inputs[std::size_t(input)] != nullptr;
  }
  const Tensor& input(int i) const { return *inputs[std::size_t(i)]; }
  std::span<const double> in(int i) const { return input(i).as<double>(); }
  std::span<const double> out(int i) const { return outputs[std::size_t(i)].as<double>(); }
  bool is_external() const { return kernels == Kernels::kAny; }
  // The error of element e of input i.
  double input_error(int i, std::size_t e) const {
    const bool is_exact = i >= int(input_errors.size()) || input_errors[std::size_t(i)] == nullptr;
    return is_exact ? 0 : input_errors[std::size_t(i)]->as<double>()[e];
  }
  // The only element of an input.
  double scalar(int i) const { return input(i).at(0); }
  std::int32_t number(int i) const { return input(i).as<std::int32_t>()[0]; }
  template <class T>
  const T& attrs() const {
    return node().attrs.as<T>();
  }
};

// Errors that rounding may add to each element of a node's outputs: for each output, float64
// tensors of its shape.
struct NodeBounds {
  // No rounding explains a larger error. Infinite or NaN: the element cannot be compared.
  std::vector<Tensor> largest;
  // For a sum: rounding errors of independent signs do not explain a larger error; repeated terms
  // and odd orders of summation may. Empty: no limit stricter than `largest` is known.
  std::vector<Tensor> usual;
  // For a sum: the deviation of an element's rounding error, if the errors are independent.
  std::vector<Tensor> deviation;

  Tensor& operator[](std::size_t output) { return largest[output]; }
  const Tensor& operator[](std::size_t output) const { return largest[output]; }
};

// The largest distance, for the same inputs, of each element of a float32 kernel from the
// reference's. Integers have to agree: their bounds are 0. Throws Error{kInternal} for an op
// without a rule.
NodeBounds node_bounds(const ComparedNode& node);

// Whether the node's rule can take rounding errors of this input (`input_errors`) into account: it
// can for statistics that a norm's backward reads, and for the logarithms of sums of losses and
// attention.
bool takes_input_error(const Node& node, int input);
// Whether the op has a rule for kernels of any program; without one all kernels have to keep what
// keel's own promise.
bool has_general_rule(const Node& node);

// Fills in the bounds; their `largest` are 0 before.
using BoundRule = void (*)(const ComparedNode&, NodeBounds&);
using BoundRules = std::map<std::string_view, BoundRule>;

// Adds the rule of an op from outside (src/ops/op_table.h), before any comparison.
void add_rule(std::string_view op, BoundRule rule);

// The rules by op, in parts.
void add_linear_rules(BoundRules& rules);
void add_sum_rules(BoundRules& rules);
void add_elementwise_rules(BoundRules& rules);
void add_loss_rules(BoundRules& rules);
void add_attention_rules(BoundRules& rules);
void add_relative_rules(BoundRules& rules);
void add_multilinear_rules(BoundRules& rules);
void add_linear_loss_rules(BoundRules& rules);
void add_drawing_rules(BoundRules& rules);
void add_mixture_rules(BoundRules& rules);
void add_update_rules(BoundRules& rules);
void add_recurrent_rules(BoundRules& rules);
void add_norm_rules(BoundRules& rules);
void add_column_rules(BoundRules& rules);
void add_norm_gradient_rules(BoundRules& rules);
void add_curve_rules(BoundRules& rules);
void add_score_rules(BoundRules& rules);

// Whether a norm of x, or the norm that `op` is the backward of, has neither a factor of xhat that
// depends on xhat, nor a score, nor a state with a schedule or for its backward.
bool is_plain_norm(const OpInfo& op);
// The rule of a norm, or of its backward, for kernels of any program; null: there is none.
BoundRule general_norm_rule(const Node& node);

}  // namespace keel::compare
