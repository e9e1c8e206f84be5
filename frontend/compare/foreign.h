// Arrays of another program, by the names of a graph's nodes: what PyTorch makes of the same
// weights and batch, for example.
#pragma once

#include <map>
#include <optional>
#include <set>

#include "frontend/compare/lane.h"
#include "frontend/io/npz.h"

namespace keel::compare {

// What leaves and inputs of a step are called in an .npz, and outputs of nodes: the path with dots
// for slashes, behind output 0 with ".<port>".
std::string array_name(const Node& node, int port);

// Parameters, states and inputs of the first step of a subject, under these names: what another
// program needs to compute the same. Throws Error{kUsage} for two of one name.
io::Arrays start_arrays(Subject& subject);

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
  const Tensor* output(Value v) const;
  // The inputs of a node as the other program had them; none when it has not given all.
  std::optional<std::vector<const Tensor*>> inputs(const Graph& graph, int index,
                                                   const Lane& truth) const;
  // Throws Error{kBadInput} naming an array that belongs to no node that was walked.
  void expect_all_used() const;

 private:
  void take_view(const Graph& graph, int index, const Lane& truth);

  std::string name_;
  io::Arrays arrays_;
  std::set<std::string> used_;
  std::map<Value, const Tensor*> known_;
  std::map<Value, Tensor> views_;
};

}  // namespace keel::compare
