// The checked request of a caller of keel_norm_prepare.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "plugin/c/keel/norm.h"
#include "src/core/tensor.h"

namespace keel::plugin {

struct Request {
  std::string_view op, attributes;
  std::vector<std::optional<TensorType>> inputs;  // by place; nullopt: absent
  int device = 0;                                 // of a GPU, its number
};

// Throws Error{kUsage} for what is not as keel/norm.h says.
Request read_request(const keel_request& given);

}  // namespace keel::plugin
