// Standard normal numbers:  element e of row r of y is
//     Philox(seed, stream, step).row_normal(first_row + r, e), by Box-Muller.
//
//   step, first_row () i32, see RandomKey
//   y (rows, ...) f32 or f64 of the shape and type asked for, axis 0 being the rows of the batch; a
//   scalar is one row
// Backends of f32 kernels compute each number within 30 * 2^-24 of the double one: a radius below
// 5.8, whose logarithm, product and root err by 3 units of 2^-24, times a cosine that errs by 2.
// backward: none; no input has a gradient.      errors: y of another type; rows of 2^33 elements
// or more.
#pragma once

#include "src/ops/random_key.h"

namespace keel {

struct RandomNormalAttrs {
  Shape shape;
  DType dtype = DType::kF32;
  std::int64_t seed = 0, stream = 0;
  static constexpr auto fields() {
    using A = RandomNormalAttrs;
    return std::tuple{field("shape", &A::shape), field("dtype", &A::dtype), field("seed", &A::seed),
                      field("stream", &A::stream)};
  }
};

// Inputs have these places.
struct RandomNormalInput {
  enum Place : int { kStep, kFirstRow };
};

extern const OpInfo kRandomNormal;

namespace ops {

// The stream is the hash of the node's name.
Value random_normal(Graph& g, const TensorType& type, const RandomKey& key, std::int64_t seed);

}  // namespace ops
}  // namespace keel
