// A plan of the C interface: one op with attributes and types, ready to run on one device.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "plugin/c/request.h"
#include "src/runtime/backend.h"

namespace keel::plugin {

// Throws Error{kUsage} for a name that norm_ops() does not have.
const OpInfo& find_norm_op(std::string_view name);

// The addresses that keel_plan_run is given.
struct Arrays {
  const void* const* inputs;
  void* const* outputs;
  void* workspace;
};

class Plan {
 public:
  virtual ~Plan() = default;
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  std::span<const TensorType> outputs() const { return outputs_; }
  std::int64_t workspace() const { return prepared_.workspace; }
  // Runs the op; null stands for the calling thread or the default stream. Throws Error{kUsage} for
  // an array that is missing, not aligned or not on the device.
  virtual void run(const Arrays& arrays, const keel_executor* executor) const = 0;

 protected:
  // Throws Error{kUsage} for an unknown op or attribute and for types that do not fit,
  // Error{kBackendMissing} if no kernel takes them.
  Plan(const Request& request, Backend& backend);

  // The arrays with their types.
  Binding bound(const Arrays& arrays) const;
  void start(const Binding& binding) const { prepared_.bind(binding)(); }
  // "[layer_norm] gain", for messages.
  std::string input_text(std::size_t place) const;
  std::string output_text(std::size_t place) const;
  std::string workspace_text() const;

 private:
  Graph graph_;
  const OpInfo& op_;
  std::vector<std::optional<TensorType>> inputs_;
  std::vector<TensorType> outputs_;
  Prepared prepared_;
  Binding blank_;  // the types of a run's arrays, without their addresses
};

// A plan on the CPU: float32 on SIMD kernels and the caller's threads, float64 on the reference.
std::unique_ptr<Plan> plan_on_host(const Request& request);

}  // namespace keel::plugin
