// One attention, forward and backward, on any backend.
#pragma once

#include "src/ops/attention.h"
#include "tests/support/graph_runner.h"

namespace keel::test {

// The inputs of one attention.
struct AttentionStep {
  Tensor q, k, v, dy;  // dy like q: the gradient of y
  AttentionAttrs attrs = {};
  Tensor key_mask = {};  // of rank 0: absent
  std::int32_t step = 3, first_row = 0;
};

// A step on normal numbers that float32 holds exactly, for a batch whose first row is the 77th.
struct AttentionCase {
  std::int64_t b, queries, keys, heads, width;
  bool masks = false, causal = false;
  double p = 0;

  AttentionStep step() const;
};

// A mask (b, tk) leaves out each key with probability 1/3, and in row r also the last r keys.
Tensor random_key_mask(std::int64_t b, std::int64_t keys);

// "y", "lse", "dq", "dk" and "dv", for floating inputs of type `dtype`.
Results run_attention(Backend& backend, const AttentionStep& step, DType dtype = DType::kF32);

// On the backend under test, in float32.
Results run_tested(const AttentionStep& step, int threads = 2);

}  // namespace keel::test
