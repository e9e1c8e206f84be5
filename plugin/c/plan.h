// A plan of the C interface: one op with attributes and types, ready to run.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "src/runtime/backend.h"

namespace keel::plugin {

class Plan {
 public:
  // The types of the inputs by place; nullopt: absent. Throws Error{kUsage} for an unknown op or
  // attribute and for types that do not fit, Error{kBackendMissing} if no kernel takes them.
  Plan(std::string_view op, std::string_view attributes,
       std::span<const std::optional<TensorType>> inputs);

  std::span<const TensorType> outputs() const { return outputs_; }
  std::int64_t workspace() const { return prepared_.workspace; }
  // Runs the op on the entered executor. Throws Error{kUsage} for an array that is missing or not
  // aligned.
  void run(const void* const* inputs, void* const* outputs, void* workspace) const;

 private:
  Graph graph_;
  const OpInfo& op_;
  std::vector<std::optional<TensorType>> inputs_;
  std::vector<TensorType> outputs_;
  Prepared prepared_;
  Binding blank_;  // the types of a run's arrays, without their addresses
};

}  // namespace keel::plugin
