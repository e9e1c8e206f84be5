// The norms over columns, each with statistics of its own or with given ones.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "src/ops/norm/norm.h"
#include "tests/support/graph_runner.h"

namespace keel::test {

// The operands of a norm of x: gain, bias, two states that are positive, two ring buffers of 4
// rows, and the number of training steps before this one.
struct ColumnOperands {
  Value x;
  ops::NormAffine affine;
  Value first, second, ring, other_ring, step, mask;
};

struct ColumnNorm {
  std::string name;
  // `given`: the statistics come from an op of their own.
  std::function<Value(Graph&, const ColumnOperands&, bool given)> build;
  bool centred;
  std::int32_t step = 0;
};
// The norms in all forms whose kernels differ; those of noisy batch norm end with the noise.
const std::vector<ColumnNorm>& column_norms();

// x, dy and the mask of a batch; no mask: an empty one.
struct ColumnBatch {
  Tensor x, dy;
  std::vector<std::uint8_t> mask;
};
enum class ColumnMask { kNone, kSome, kEmpty };
ColumnBatch column_batch(const Shape& shape, ColumnMask mask);

// Every output of the norm, dx, dgain, dbias and the next states of the backward, by name.
Results run_column_norm(Backend& backend, const ColumnNorm& norm, const ColumnBatch& batch,
                        bool given);
// The operands as leaves of a graph, and what to feed them.
ColumnOperands column_operands(Graph& g, Feeds& feeds, const ColumnNorm& norm,
                               const ColumnBatch& batch);

}  // namespace keel::test
