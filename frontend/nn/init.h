// Initial values of parameters. Those that are drawn come from Philox keyed by (seed, parameter
// name), in f32, so they are the same on every backend; a constant is rounded once, to the
// parameter's element type. fan_in is the number of inputs that meet in one output.
#pragma once

#include "src/graph/node.h"

namespace keel::nn {

Initializer constant(double value);
inline Initializer zeros() { return constant(0); }
inline Initializer ones() { return constant(1); }
Initializer normal(double deviation);
Initializer uniform(double bound);                // U(-bound, bound)
Initializer lecun_normal(std::int64_t fan_in);    // N(0, 1 / fan_in)
Initializer kaiming_normal(std::int64_t fan_in);  // N(0, 2 / fan_in)
Initializer fan_in_uniform(std::int64_t fan_in);  // U(+-1 / sqrt(fan_in))
Initializer xavier_uniform(std::int64_t fan_in, std::int64_t fan_out, double gain = 1);

}  // namespace keel::nn
