// Initial values of parameters. Random ones come from Philox keyed by (seed, parameter name), in
// f32, so they are the same on every backend; a constant is rounded once, to the parameter's
// element type. fan_in is the number of inputs that meet in one output.
#pragma once

#include "src/graph/node.h"

namespace keel::nn {

Initializer constant(double value);
inline Initializer zeros() { return constant(0); }
inline Initializer ones() { return constant(1); }
// What `init` draws for a weight (rows, columns), with these vectors divided by their length.
Initializer with_unit_vectors(Initializer init, UnitVectors unit);
Initializer normal(double deviation, double mean = 0);
Initializer uniform(double bound);                // U(-bound, bound)
Initializer lecun_normal(std::int64_t fan_in);    // N(0, 1 / fan_in)
Initializer kaiming_normal(std::int64_t fan_in);  // N(0, 2 / fan_in)
Initializer fan_in_uniform(std::int64_t fan_in);  // U(+-1 / sqrt(fan_in))
Initializer xavier_uniform(std::int64_t fan_in, std::int64_t fan_out, double gain = 1);
// `gain` times a random matrix (rows, cols) whose rows, or columns if there are fewer of them, are
// orthonormal. It is drawn evenly from all such matrices, as the Q of a QR decomposition of
// standard normal numbers with a positive diagonal of R. With `blocks` > 1 the columns are cut into
// that many equal blocks, such as the gates of an LSTM, each a matrix of its own. Takes 4 rows^2
// cols operations: 11 s for 2400 x 2400. Throws Error{kUsage} for another rank, and if `blocks`
// does not divide the columns.
Initializer orthogonal(double gain = 1, std::int64_t blocks = 1);

}  // namespace keel::nn
