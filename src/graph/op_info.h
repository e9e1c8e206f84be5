// The description of an op for the graph: a plain struct of facts and two functions, no virtuals.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/core/dtype_set.h"
#include "src/graph/node.h"

namespace keel {

class Graph;

// How the backward relates to the derivative of the forward. Tests choose their oracle by it.
enum class GradientKind {
  kNone,       // not differentiable; the backward refuses
  kExact,      // the derivative
  kDetached,   // the derivative with some statistics held constant
  kSurrogate,  // an approximation, defined by its own formula
};

// A node that is being added: its op, the types of its inputs, and its attributes.
struct InferContext {
  const OpInfo& op;
  std::span<const TensorType* const> inputs;  // nullptr: absent
  const Attrs& attrs;

  bool has(int i) const { return i < int(inputs.size()) && inputs[i] != nullptr; }
  // Type of input i. Throws Error{kUsage} when it is absent.
  const TensorType& input(int i) const;
  const Shape& shape(int i) const { return input(i).shape; }
  DType dtype(int i) const { return input(i).dtype; }
  // Throws "[op] what: expected E, got G" if `holds` is false.
  void expect(bool holds, std::string_view what, const std::string& expected,
              const std::string& got) const;
  void expect_shape(int i, std::string_view what, const Shape& expected) const;
  void expect_dtype(int i, std::string_view what, DType expected) const;
  void expect_floating(int i, std::string_view what) const;
};

// Maps each state to its next value, if a backward rule has set one. The key is the Value by which
// forward nodes read the current state.
using StateValues = std::map<Value, Value>;

// A node whose gradient is being built. `backward` reads the gradients of its outputs, appends
// explicit nodes to the graph, and sets the gradients of its inputs.
class BackwardContext {
 public:
  BackwardContext(Graph& graph, int node, std::span<const Value> output_gradients,
                  std::span<const bool> needed, StateValues& states);

  Graph& graph;
  Value input(int i) const;
  Value output(int j) const { return {node_, j}; }
  const TensorType& type(Value v) const;
  const Attrs& attrs() const;
  // Gradient of output j; absent when nothing downstream depends on it.
  Value grad(int j = 0) const { return output_gradients_[j]; }
  // Whether the gradient of input i is wanted at all.
  bool needs(int i) const;
  void set(int i, Value gradient) { input_gradients_[i] = gradient; }
  // Returns the current value of the state at input i: the next value that the backward of another
  // node has already set, or the input itself if none has.
  Value state(int i) const;
  // Sets the next value of the state at input i. A backward rule only proposes it: the code that
  // builds the training step decides whether to mark the update (Graph::mark_update).
  void set_state(int i, Value next) { states_[input(i)] = next; }
  std::span<const Value> result() const { return input_gradients_; }

 private:
  int node_;
  std::span<const Value> output_gradients_;
  std::span<const bool> needed_;
  StateValues& states_;
  std::vector<Value> input_gradients_;
};

// Permission to write output `output` over input `input`, given when their types are equal.
struct InPlace {
  int input;
  int output;
};

// Whether a node's outputs share the memory of input 0, so that no kernel runs.
enum class View {
  kNo,
  kWhole,  // Output 0 is all of input 0 under another shape.
  // The outputs, all of one type, are the equal parts of input 0 in order. They share its memory
  // only if each begins at a multiple of kAlignment bytes, because kernels rely on that.
  kParts,
};

// An input of an op: its name in messages, and the element types that the op accepts there.
struct OpInput {
  OpInput(const char* called, DTypes taken = kFloatingTypes)  // NOLINT: implicit
      : name(called), types(taken) {}
  std::string_view name;
  DTypes types;
};

// The elements of x that share one statistic of a norm.
enum class NormGroups {
  kRows,       // those of the last axes, or of a part of a row
  kParts,      // some channels of an image or of a token
  kSequences,  // a feature over the steps of a sample: x (samples, steps, channels)
  kColumns,    // a feature over the batch
  kElements,   // none: an element of y depends on one element of x
};

// A curve that stands in place of statistics, y = gain f(u) + bias with u = alpha x + shift: f, its
// derivative, and the errors that a kernel may make in each, in units of 2^-23 of the result: one
// more than the largest found, for targets without fused products. The derivative is largest at 0
// and falls to both sides.
struct NormCurve {
  double (*value)(double u);
  double (*slope)(double u);
  double value_error, slope_error;
};

// The facts by which one norm of x differs from another. Its terms are told by the names of its
// inputs and outputs: gain, bias, mask, mean, rstd; r and d, where y = r xhat + d; row_rstd of a
// scaling of rows in front; rdx, the factor of dx where that is not rstd; ratio, a factor of dy
// alone; nu, gz or both, the running mean of g xhat and those of the last steps; score, the sum of
// x b over a row, where the gain is tanh(score) a + gain. The output next_S is the next value of
// the state that the input S reads. An input is a learned parameter if the backward has an output
// for its gradient, dalpha for alpha. The attribute `offset` is added to the gain; mean_penalty and
// deviation_penalty weigh the terms of a loss beside y by which dx keeps mean and 1 / rstd near
// what next_running_mean and next_running_var, inputs of the backward, give.
struct NormTraits {
  NormGroups groups = NormGroups::kRows;
  // Whether training normalizes by running statistics, and not only by those of the batch.
  bool by_running_statistics = false;
  // Whether 1 / rstd is the length of a row, a sum and not a mean.
  bool by_length = false;
  // How much of its running statistics a batch keeps, 0 to 1; nothing where they hold nothing of
  // their first values. Null: the attribute `keep`, or nothing without one.
  std::optional<double> (*kept)(const Attrs&) = nullptr;
  // The largest factor of xhat in y, and of dy in g, where that depends on xhat.
  double (*largest_factor)(const Attrs&, double xhat) = nullptr;
  const NormCurve* curve = nullptr;  // that of a norm of elements
};

struct OpInfo {
  std::string_view name;
  // By place. The last entry also describes all further inputs of an op that takes any number.
  std::vector<OpInput> inputs = {};
  DTypes outputs = kAnyType;  // a set of one type: every output has it, whatever the inputs are
  std::vector<std::string_view> output_names = {};  // by place; norms have them
  Attrs attrs = {};  // the defaults, in the struct that the nodes of this op carry
  std::vector<TensorType> (*infer)(const InferContext&) = nullptr;
  void (*backward)(BackwardContext&) = nullptr;  // nullptr: building a gradient refuses
  GradientKind gradient = GradientKind::kNone;
  std::optional<NormTraits> norm = {};  // the forward op of a norm of x
  const OpInfo* forward = nullptr;      // the backward op of a norm: the op that it belongs to
  std::vector<InPlace> in_place = {};
  // Whether its in-place outputs stay unchanged in a step whose guard, the norm of the gradient, is
  // not finite.
  bool keeps_on_guard = false;
  View view = View::kNo;
  int code = 0;  // which member of a family this op is (element-wise ops)
};

// The place of an input or output that has this name; -1: there is none.
int input_place(const OpInfo& op, std::string_view name);
int output_place(const OpInfo& op, std::string_view name);
// The forward op of a norm of x: op itself, or the op that it is the backward of. Null: neither.
const OpInfo* forward_norm(const OpInfo& op);
// NormTraits::kept of a node; nothing if it is no norm of x.
std::optional<double> kept_by_batch(const Node& node);
inline bool is_column_norm(const OpInfo& op) {
  return op.norm && op.norm->groups == NormGroups::kColumns;
}

// The name of input i in messages: "gain", or "part 2" where the op takes any number of parts.
std::string input_name(const OpInfo& op, int i);
// The element types that the op accepts as input i.
DTypes input_types(const OpInfo& op, int i);

// Reads the attributes of a node from their text (Attrs::text). Fields that are not named keep
// their defaults. Throws Error{kUsage}: "[layer_norm] eps: expected a number, got 'x'".
Attrs attrs_from_text(const OpInfo& op, std::string_view text);

// Whether the outputs of a node lie in the memory of its input 0.
inline bool is_view(const Node& node) {
  if (node.kind != NodeKind::kOp || node.op->view == View::kNo) return false;
  return node.op->view == View::kWhole || node.outputs.size() == 1 ||
         node.outputs[0].bytes() % std::int64_t(kAlignment) == 0;
}

// The number of elements of input 0 that lie before output `port` of a view.
inline std::int64_t view_offset(const Node& node, int port) {
  return port * node.outputs[0].shape.elements();
}

}  // namespace keel
