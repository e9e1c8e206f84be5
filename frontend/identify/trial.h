// A form of a norm on the caller's x: what the reference backend computes, and how far from it
// rounding may take any program.
#pragma once

#include "frontend/compare/walk/node_reference.h"
#include "frontend/identify/form.h"

namespace keel::identify {

// A result in float64, and the bound of each of its elements.
struct Judged {
  Tensor value, bound;

  // The largest |got - value| in bounds; infinite for a NaN, and for another number of elements.
  double distance(const Tensor& got) const;
};

// Whether y is the result of a program in bfloat16: all its numbers are of that type.
bool is_bf16(const Tensor& y);
// Adds to the bounds what two roundings to bfloat16 change: of xhat, and of its product with the
// gain.
void add_bf16_rounding(Judged& y);

struct ComparedGradient {
  Judged dx;
  std::optional<Judged> dgain;  // absent: the norm has no gain
};

class Trial {
 public:
  // Both have to outlive it. Throws Error{kUsage} where the norm does not take such an x, or
  // parameters and states of these shapes.
  Trial(Backend& reference, const Given& given, const Form& form);

  // y without bounds, in the order of x.
  Tensor y();
  Judged bounded_y();
  // The norm's gradient for this dy; `gain` is in place of the one that y was formed with.
  ComparedGradient gradient(const Tensor& dy, const Tensor* gain = nullptr);
  // The gain that y was formed with, in the shape of the parameter; null: the norm has none.
  const Tensor* gain() const;
  // Whether the norm has a state of this name.
  bool has_state(const std::string& name) const;
  // Each state that the norm's own node changes, after the step, by its name.
  std::map<std::string, Judged> states();
  // Whether any float32 kernel keeps the bounds, or only keel's own kernels promise them.
  bool has_general_bounds() const;

 private:
  void add_leaves();
  Tensor leaf(const Node& node) const;
  void run_to_norm();
  compare::NodeResult run_node(int node, bool wants_bounds);
  void run_forward();
  Value add_backward();

  Backend& reference_;
  const Given& given_;
  Form form_;
  Graph graph_;
  Value y_;                // of the norm's own node; of none the input
  Value dy_, dx_, dgain_;  // absent until a gradient is asked for
  std::map<Value, Tensor> values_;
  std::map<Value, Tensor> errors_;  // of the norm's further outputs
  std::vector<Tensor> bounds_;      // of the norm's outputs
};

}  // namespace keel::identify
