// The plans of the ops that PyTorch has called, by op, attributes, element types and sizes.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "plugin/c/keel/norm.h"
#include "plugin/c/torch_tensor.h"

namespace keel::plugin::torch {

// A plan with what its run allocates.
struct Planned {
  struct Free {
    void operator()(keel_plan* plan) const { keel_plan_free(plan); }
  };
  std::unique_ptr<keel_plan, Free> plan;
  struct Output {
    Form form;  // its sizes belong to the plan
    std::int64_t bytes;
  };
  std::vector<Output> outputs;
  std::int64_t workspace = 0;
};

struct Request {
  const char* op;
  const std::string& attributes;
  keel_device device;
  std::span<const Tensor> inputs;
};

// The plan of a request, made where there is none yet. Any thread may ask at any time. Throws
// std::invalid_argument with keel's words for what keel refuses.
std::shared_ptr<const Planned> plan_for(const Request& request);

}  // namespace keel::plugin::torch
