// Plants the faults of a walk where they belong.
#pragma once

#include <map>
#include <set>
#include <span>
#include <vector>

#include "frontend/compare/fault.h"
#include "src/graph/graph.h"

namespace keel::compare {

class FaultPlanter {
 public:
  // A fault that names no backend strikes the first. Throws Error{kUsage} for one of a backend that
  // is not among these.
  FaultPlanter(std::vector<Fault> faults, const std::vector<std::string>& backends);

  // What a node of a backend is about to hand over.
  struct Site {
    const Node& node;
    std::string_view backend;
    std::int64_t step = 0;
    std::span<const Tensor* const> inputs;
  };
  // Spoils the outputs of a node. Throws Error{kUsage} for a view, for an output that there is not,
  // and where plant() does.
  void strike(const Site& site, std::vector<Tensor>& outputs);
  // Spoils what a leaf takes after the step; `former` is what it held.
  void strike_update(const Site& site, Tensor& value, const Tensor& former);
  // Throws Error{kUsage} for a fault that should have been planted by the end of a step.
  void expect_planted(const std::string& subject, std::int64_t step) const;

 private:
  static bool strikes(const Fault& fault, const Site& site);
  Tensor former_output(const Fault& fault, const Site& site, const Tensor& output) const;

  std::vector<Fault> faults_;
  std::map<std::string, Tensor> former_;  // what nodes at fault gave, by the fault
  std::set<std::string> planted_;
};

}  // namespace keel::compare
