// Arrays of another program, by the names of a graph's nodes: what PyTorch makes of the same
// weights and batch, for example.
#pragma once

#include <map>
#include <span>

#include "frontend/compare/lane.h"
#include "frontend/io/npz.h"

namespace keel::compare {

// What leaves and inputs of a step are called in an .npz, and outputs of nodes: the path with dots
// for slashes, after output 0 with ".<port>".
std::string array_name(const Node& node, int port);

// An array that another program may give, or is given by start_arrays().
struct ArrayFacts {
  std::string name, type;
  std::string kind;                 // the op, or "input", "parameter", "state", "constant"
  std::vector<std::string> inputs;  // of an op, the arrays that it reads
};
std::vector<ArrayFacts> array_facts(const Graph& graph);

// Parameters, states, constants and inputs of the first step of a subject, under these names: what
// another program needs to compute the same. Throws Error{kUsage} for two of one name.
io::Arrays start_arrays(Subject& subject);

// The inputs of a node as another program had them.
struct ForeignInputs {
  std::vector<const Tensor*> values;  // null: absent from the node
  // How far each may be from what the program had: of a statistic, or a single number, that it did
  // not give and that the judge computed from what it gave. Null: it was given, or is exact.
  std::vector<const Tensor*> errors;
  std::string missing;  // the array that is needed and was not given, or empty
};

class ForeignValues {
 public:
  // `name` is that of the file, for reports.
  ForeignValues(std::string name, io::Arrays arrays)
      : name_(std::move(name)), arrays_(std::move(arrays)) {}

  const std::string& name() const { return name_; }
  // Takes in a node of a walk whose judge's values are `truth`: a view of what is known is known.
  // Throws Error{kBadInput} for an array of another shape, or of whole numbers in place of others.
  void take(const Graph& graph, int index, const Lane& truth);
  // Whether an array has an output of the node.
  bool has_output(const Graph& graph, int index) const;
  // The array of an output; null: none was given.
  const Tensor* given(const Graph& graph, Value v) const;
  ForeignInputs inputs(const Graph& graph, int index, const Lane& truth) const;
  // Takes in the further outputs of a node, such as a norm's statistics, and its first if it is one
  // number (a loss's weight, a learning rate), as the judge computed them from the inputs given;
  // `bounds` say how far the program's own may be off. What was given stays.
  void derive(int index, std::span<const Tensor> outputs, std::span<const Tensor> bounds);
  // Throws Error{kBadInput} naming an array that is called as no output of a node of the graph.
  void expect_names(const Graph& graph) const;

 private:
  struct Known {
    const Tensor* value = nullptr;
    const Tensor* error = nullptr;
  };
  struct Derived {
    Tensor value, error;
    bool is_exact = false;
  };

  void take_view(const Graph& graph, int index, const Lane& truth);
  Known known(const Graph& graph, Value v, const Lane& truth) const;

  std::string name_;
  io::Arrays arrays_;
  std::map<Value, const Tensor*> known_;
  std::map<Value, Tensor> views_;
  std::map<Value, Derived> derived_;
};

}  // namespace keel::compare
