// A static graph of one program: nodes in an order that can be run, named outputs, and the values
// that persistent leaves take after the run.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "src/graph/node.h"
#include "src/graph/op_info.h"

namespace keel {

struct NamedValue {
  std::string name;
  Value value;
};

// The update of a leaf: after a run, leaf <- next.
struct Update {
  Value leaf;
  Value next;
};

class Graph {
 public:
  // Leaves. Names are full paths and must be new; Error{kUsage} otherwise.
  Value input(const std::string& name, const TensorType& type);
  Value parameter(const std::string& name, const TensorType& type, Initializer initializer,
                  const ParameterFacts& facts = {});
  Value state(const std::string& name, const TensorType& type, Initializer initializer,
              const std::optional<Bounds>& bounds = {});
  // A state that begins as zeros, is computed from parameters and is in no checkpoint.
  Value derived(const std::string& name, const TensorType& type);
  // The value that an earlier run left by mark_update under this name; zeros if none of this type.
  Value carry(const std::string& name, const TensorType& type);
  Value constant(Tensor value);
  Value constant(double value, DType dtype = DType::kF32);

  // Appends an op and returns its output 0. Types are inferred and checked: if they do not fit,
  // throws Error{kUsage} "[op] what: expected, got" with the node's name.
  Value add(const OpInfo& op, std::vector<Value> inputs, Attrs attrs = {});

  // Makes output 0 of an op, which is float32 by the op's own rule, bf16: the kernel computes the
  // same number and rounds it once, to the nearest, ties to even. To be called before another node
  // reads it. Throws Error{kUsage} for another type.
  void narrow_result(Value result);

  void mark_output(const std::string& name, Value value);
  // Throws Error{kUsage} unless `leaf` is a parameter, state or carry without an
  // update, and the types agree.
  void mark_update(Value leaf, Value next);
  // Replaces the next value of a leaf. Throws Error{kUsage} unless its update is
  // marked and the types agree.
  void replace_update(Value leaf, Value next);

  // Forgets all updates and returns them: the leaves keep their values.
  std::vector<Update> take_updates();

  // Names of nodes added while a Scope lives are prefixed by it: "fc1/" + ....
  class Scope;
  [[nodiscard]] Scope scope(const std::string& name);
  // A new name for a node: the scope, then `base`, with a number if that name is taken.
  std::string unique_name(std::string_view base);
  const std::string& prefix() const { return prefix_; }

  int size() const { return static_cast<int>(nodes_.size()); }
  const Node& node(int index) const { return nodes_[static_cast<std::size_t>(index)]; }
  const Node& node(Value v) const { return node(v.node); }
  const TensorType& type(Value v) const {
    return node(v).outputs[static_cast<std::size_t>(v.port)];
  }
  const Shape& shape(Value v) const { return type(v).shape; }
  std::span<const NamedValue> outputs() const { return outputs_; }
  std::span<const Update> updates() const { return updates_; }
  // The value that a leaf takes after the run; absent if the leaf keeps its value.
  Value next_of(Value leaf) const;
  // The leaf of that name, or an absent Value.
  Value find_leaf(const std::string& name) const;
  // Every leaf of a kind, in the order in which they were added.
  std::vector<Value> leaves(NodeKind kind) const;

  // Reserves space for the names of this many nodes.
  void reserve(int nodes) { names_.reserve(static_cast<std::size_t>(nodes)); }
  // Appends a copy of a node of another graph, with its inputs already translated (for passes).
  Value append(const Node& node, std::vector<Value> inputs);
  // Sets the name of the nodes that the next add() calls create, in place of the op's own name.
  void name_next(std::string name) { next_name_ = std::move(name); }

 private:
  // A name in use: the node that has it, and the next number to try for another node
  // that asks for the same name.
  struct Name {
    int node = 0;
    int next_number = 2;
  };

  Value leaf(NodeKind kind, const std::string& name, const TensorType& type);
  Value push(Node node);

  std::deque<Node> nodes_;  // references to nodes stay valid while ops are added
  std::vector<NamedValue> outputs_;
  std::vector<Update> updates_;
  std::unordered_map<int, Value> next_;  // by node of the leaf
  std::unordered_map<std::string, Name> names_;
  std::string prefix_, next_name_;
};

// Restores the former prefix when it goes out of scope.
class Graph::Scope {
 public:
  Scope(Graph& graph, const std::string& name) : graph_(graph), former_(graph.prefix_) {
    graph_.prefix_ += name + "/";
  }
  ~Scope() { graph_.prefix_ = former_; }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  Graph& graph_;
  std::string former_;
};

inline Graph::Scope Graph::scope(const std::string& name) { return Scope(*this, name); }

}  // namespace keel
