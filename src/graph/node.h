// Nodes and values: the vocabulary of the graph.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/core/rng.h"
#include "src/core/tensor.h"
#include "src/graph/attrs.h"

namespace keel {

struct OpInfo;

// One output of one node. A default Value is "absent": an optional input that is not given.
struct Value {
  int node = -1;
  int port = 0;

  bool valid() const { return node >= 0; }
  // Another output of the same node.
  Value at(int other_port) const { return {node, other_port}; }
  friend auto operator<=>(const Value&, const Value&) = default;
};

enum class NodeKind {
  kInput,      // fed before every run
  kParameter,  // persistent and learned
  kState,      // persistent and not learned: running statistics, optimizer moments, counters
  kCarry,      // left by one run to the next and no part of a model (src/runtime/carries.h)
  kConstant,   // known when the graph is built
  kOp,
};

// Whether a leaf keeps its value from run to run.
constexpr bool persists(NodeKind kind) {
  return kind == NodeKind::kParameter || kind == NodeKind::kState || kind == NodeKind::kCarry;
}

// Fills a parameter or state before the first step; `random` is keyed by (seed, leaf name).
using Initializer = std::function<void(Tensor& value, const Philox& random)>;

// The smallest and largest value that an element of a state may have when the value comes from
// outside, for example from a checkpoint; kernels rely on these bounds. NaN is never within them.
struct Bounds {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
};
// Use kNotNegative for a running variance or mean of squares, kPositive for a running standard
// deviation (kernels divide by it), kStepCount for a count of steps (kernels add 1 to it).
inline constexpr Bounds kNotNegative{.least = 0};
inline constexpr Bounds kPositive{.least = std::numeric_limits<float>::denorm_min()};
inline constexpr Bounds kStepCount{.least = 0,
                                   .most = std::numeric_limits<std::int32_t>::max() - 1};

// The vectors of a weight (rows, columns) whose length every update makes 1.
enum class UnitVectors { kNone, kRows, kColumns };

// Facts about a parameter for the optimizer.
struct ParameterFacts {
  bool decays = true;   // whether weight decay applies; usually not for gains and biases
  bool trains = true;   // it has a gradient and is updated
  double lr_scale = 1;  // multiplies the learning rate
  UnitVectors unit = UnitVectors::kNone;
};

struct Node {
  NodeKind kind = NodeKind::kOp;
  std::string name;                        // unique path, such as "fc1/norm"
  const OpInfo* op = nullptr;              // kOp only
  Attrs attrs;                             // kOp only
  std::vector<Value> inputs;               // kOp only; absent ones are invalid Values
  std::vector<TensorType> outputs;         // an output that does not apply has the shape (0)
  Initializer initializer;                 // kParameter and kState
  ParameterFacts facts;                    // kParameter
  std::optional<Bounds> bounds;            // kState
  bool is_cached = false;                  // kState: computed from parameters, in no checkpoint
  bool is_bf16 = false;                    // kOp: see Graph::narrow_result
  std::shared_ptr<const Tensor> constant;  // kConstant
};

// The type of an output that does not apply, such as dgain of a norm without gain.
inline TensorType absent_type(DType dtype) { return {dtype, Shape{0}}; }

}  // namespace keel
