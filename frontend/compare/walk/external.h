// Arrays of another program under the names of a graph's nodes: for example PyTorch's results for
// the same weights and batch.
#pragma once

#include <map>
#include <span>

#include "frontend/compare/walk/backend_trace.h"
#include "frontend/io/npz.h"

namespace keel::compare {

// The name, in an .npz, of a leaf, an input of a step or an output of a node: the path with dots
// for slashes, and ".<port>" for outputs after the first.
std::string array_name(const Node& node, int port);

// An array that another program may provide, or that start_arrays() provides.
struct ArrayFacts {
  std::string name, type;
  std::string kind;                 // the op, or "input", "parameter", "state", "constant"
  std::vector<std::string> inputs;  // of an op, the arrays that it reads
};
std::vector<ArrayFacts> array_facts(const Graph& graph);

// Parameters, states, constants and inputs of a subject's first step, under these names: all that
// another program needs to compute the same. Throws Error{kUsage} if two have one name.
io::Arrays start_arrays(Subject& subject);

// The inputs of a node, with the values of the other program.
struct ExternalInputs {
  std::vector<const Tensor*> values;  // null: absent from the node
  // How far each value may be from the program's own: for a statistic or a single number that the
  // program did not give, so that the reference computed it. Null: it was given, or is exact.
  std::vector<const Tensor*> errors;
  std::string missing;  // the needed array that was not given, or empty
};

class ExternalValues {
 public:
  // `name` is the name of the file, for reports.
  ExternalValues(std::string name, io::Arrays arrays)
      : name_(std::move(name)), arrays_(std::move(arrays)) {}

  const std::string& name() const { return name_; }
  // Takes in a node of a walk; the reference's values are `truth`. A view of a known value is
  // known. Throws Error{kBadInput} for an array of another shape, or of integers in place of
  // others.
  void take(const Graph& graph, int index, const BackendTrace& truth);
  // Whether there is an array for an output of the node.
  bool has_output(const Graph& graph, int index) const;
  // The array of an output; null: none was given.
  const Tensor* given(const Graph& graph, Value v) const;
  ExternalInputs inputs(const Graph& graph, int index, const BackendTrace& truth) const;
  // Takes in the further outputs of a node, such as a norm's statistics, and its first if it is a
  // single number (a loss's weight, a learning rate), as the reference computed them from the given
  // inputs; `bounds` limit the error of the program's own values. Arrays that were given stay.
  void derive(int index, std::span<const Tensor> outputs, std::span<const Tensor> bounds);
  // Throws Error{kBadInput} naming an array whose name is not that of any output of a node.
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

  void take_view(const Graph& graph, int index, const BackendTrace& truth);
  Known known(const Graph& graph, Value v, const BackendTrace& truth) const;

  std::string name_;
  io::Arrays arrays_;
  std::map<Value, const Tensor*> known_;
  std::map<Value, Tensor> views_;
  std::map<Value, Derived> derived_;
};

}  // namespace keel::compare
