// Plants the faults of a walk in the right nodes.
#pragma once

#include <map>
#include <set>
#include <span>
#include <vector>

#include "frontend/compare/walk/fault.h"
#include "src/graph/graph.h"

namespace keel::compare {

class FaultPlanter {
 public:
  // A fault that names no backend is planted in the first. Throws Error{kUsage} for a fault whose
  // backend is not among `backends`.
  FaultPlanter(std::vector<Fault> faults, const std::vector<std::string>& backends);

  // A node of a backend that is about to hand over its outputs.
  struct Site {
    const Node& node;
    std::string_view backend;
    std::int64_t step = 0;
    std::span<const Tensor* const> inputs;
  };
  // Spoils the outputs of a node. Throws Error{kUsage} for a view, for an output that does not
  // exist, and as plant() does.
  void strike(const Site& site, std::vector<Tensor>& outputs);
  // Spoils the new value of a leaf after the step; `former` is its old value.
  void count_non_finite(const Site& site, Tensor& value, const Tensor& former);
  // Throws Error{kUsage} for a fault that was due by the end of a step and was not planted.
  void expect_planted(const std::string& subject, std::int64_t step) const;

 private:
  static bool consecutive_non_finite(const Fault& fault, const Site& site);
  Tensor former_output(const Fault& fault, const Site& site, const Tensor& output) const;

  std::vector<Fault> faults_;
  std::map<std::string, Tensor> former_;  // last right outputs of nodes at fault, by the fault
  std::set<std::string> planted_;
};

}  // namespace keel::compare
