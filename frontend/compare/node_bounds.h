// What rounding may add to the outputs of any node: the bound that a backend is held to. The
// formulas and where they come from are in docs/numerics.md.
#pragma once

#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "src/runtime/backend.h"

namespace keel::compare {

// A node as the judge has run it.
struct JudgedNode {
  Backend& judge;
  const Graph& graph;
  int index = 0;
  std::span<const Tensor* const> inputs;  // of the judge, in float64; null: absent
  std::span<const Tensor> outputs;

  const Node& node() const { return graph.node(index); }
  bool has(int input) const {
    return input < int(inputs.size()) && inputs[std::size_t(input)] != nullptr;
  }
  const Tensor& input(int i) const { return *inputs[std::size_t(i)]; }
  std::span<const double> in(int i) const { return input(i).as<double>(); }
  std::span<const double> out(int i) const { return outputs[std::size_t(i)].as<double>(); }
  // The only element of an input.
  double scalar(int i) const { return input(i).at(0); }
  std::int32_t number(int i) const { return input(i).as<std::int32_t>()[0]; }
  template <class T>
  const T& attrs() const {
    return node().attrs.as<T>();
  }
};

// For each output a tensor of its shape: how far each element of a float32 kernel may be from the
// judge's, given the same inputs. Integers have to agree and their bounds are 0. Throws
// Error{kInternal} for an op without a rule.
std::vector<Tensor> node_bounds(const JudgedNode& node);

// Fills the bounds, one tensor of float64 for each output, which are 0 before.
using BoundRule = void (*)(const JudgedNode&, std::vector<Tensor>&);
using BoundRules = std::map<std::string_view, BoundRule>;

// The rules by op, in parts.
void add_linear_rules(BoundRules& rules);
void add_elementwise_rules(BoundRules& rules);
void add_loss_rules(BoundRules& rules);
void add_attention_rules(BoundRules& rules);
void add_drawing_rules(BoundRules& rules);
void add_mixture_rules(BoundRules& rules);
void add_update_rules(BoundRules& rules);
void add_recurrent_rules(BoundRules& rules);
void add_norm_rules(BoundRules& rules);
void add_norm_gradient_rules(BoundRules& rules);

}  // namespace keel::compare
