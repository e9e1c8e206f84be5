// Parts of attention that act on heads. Head h of x (batch, length, heads * width of a head) has
// the features [h w, (h + 1) w), w being its width.
#pragma once

#include <string>

#include "frontend/nn/norm.h"

namespace keel::nn {

// QK-norm (Henry et al. 2020, with the norm of later models: an RMSNorm with a learned gain):
// normalizes every head's slice of x, a row of w features. All heads share the parameters, such as
// "<name>/gain" (w). y is like x. Throws Error{kUsage} unless heads divides the features.
Value norm_heads(Net& net, const std::string& name, Value x, std::int64_t heads, const Norm& norm);
// x with every head divided by its length, or by 1e-12 where that is more.
Value unit_heads(Net& net, Value x, std::int64_t heads);

// Grouped queries (Ainslie et al. 2023): the keys or values of few heads for `times` as many heads
// of queries. Head h of y (batch, length, times * features of x) is head h / times of x, rounded
// down. The gradient of a head is the sum of its copies'. Throws Error{kUsage} unless heads divides
// the features and times is 1 or more.
Value repeat_heads(Net& net, Value x, std::int64_t heads, std::int64_t times);

}  // namespace keel::nn
