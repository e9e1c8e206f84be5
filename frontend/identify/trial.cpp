#include "frontend/identify/trial.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "frontend/nn/norm.h"
#include "src/ops/norm/norm.h"

namespace keel::identify {
namespace {

const std::string kLayer = "norm";

Tensor reshaped(const Tensor& t, const Shape& shape) {
  check(t.elements() == shape.elements(), ErrorKind::kUsage, "expected {}, got {}", shape.text(),
        t.shape().text());
  return Tensor::of<double>(shape, t.as<double>());
}

// A parameter of features for each step and feature.
Tensor repeated(const Tensor& t, const Shape& shape) {
  check(t.elements() > 0 && shape.elements() % t.elements() == 0, ErrorKind::kUsage,
        "expected {}, got {}", shape.text(), t.shape().text());
  Tensor result(DType::kF64, shape);
  for (std::int64_t i = 0; i < result.elements(); ++i) {
    result.as<double>()[std::size_t(i)] = t.at(i % t.elements());
  }
  return result;
}

Tensor filled(const Shape& shape, double value) {
  Tensor result(DType::kF64, shape);
  std::ranges::fill(result.as<double>(), value);
  return result;
}

Tensor plus_one(Tensor t) {
  for (double& v : t.as<double>()) v += 1;
  return t;
}

}  // namespace

double Judged::distance(const Tensor& got) const {
  constexpr double kFar = std::numeric_limits<double>::infinity();
  if (got.elements() != value.elements()) return kFar;
  double most = 0;
  for (std::int64_t i = 0; i < got.elements(); ++i) {
    const double error = std::abs(got.at(i) - value.at(i));
    if (error == 0) continue;
    const double share = error / bound.at(i);
    most = std::max(most, std::isnan(share) ? kFar : share);
  }
  return most;
}

Trial::Trial(Backend& reference, const Given& given, const Form& form)
    : reference_(reference), given_(given), form_(form) {
  nn::Net net{.graph = graph_};
  if (form.evaluates) net.mode = nn::Mode::kEvaluate;
  net.step = graph_.input("step", {DType::kI32, {}});
  net.first_row = graph_.constant(Tensor(DType::kI32, {}));
  const Shape& shape = given.x.shape();
  const Shape own = form.by_step ? Shape{shape[0], shape[1] * shape[2]} : shape;
  const Value x = graph_.input("x", {DType::kF32, own});
  y_ = nn::Norm::parse(form.text()).alone(net, kLayer, x);
  while (is_view(graph_.node(y_))) y_ = graph_.node(y_).inputs[0];
  add_leaves();
  run_to_norm();
}

void Trial::add_leaves() {
  for (int i = 0; i < graph_.size(); ++i) {
    if (graph_.node(i).kind != NodeKind::kOp) values_[{i, 0}] = leaf(graph_.node(i));
  }
}

// Gain and bias as they were given, or 1 and 0; states as they were before, or as they start.
Tensor Trial::leaf(const Node& node) const {
  const Shape& shape = node.outputs[0].shape;
  if (node.kind == NodeKind::kConstant) return node.constant->clone();
  if (node.kind == NodeKind::kInput) {
    return node.name == "x" ? reshaped(given_.x, shape) : Tensor(node.outputs[0]);
  }
  const std::string name = node.name.substr(kLayer.size() + 1);
  if (const auto further = given_.more.find(name); further != given_.more.end()) {
    return reshaped(further->second, shape);
  }
  if (node.kind == NodeKind::kParameter) {
    const bool is_gain = name == "gain";
    const auto& own = is_gain ? given_.gain : given_.bias;
    if (!own) return filled(shape, is_gain ? 1 : 0);
    Tensor value = form_.by_step ? repeated(*own, shape) : reshaped(*own, shape);
    return is_gain && form_.adds_one ? plus_one(std::move(value)) : std::move(value);
  }
  const auto before = given_.before.find(name);
  if (before != given_.before.end()) {
    return reshaped(before->second, shape).to(node.outputs[0].dtype);
  }
  Tensor value(node.outputs[0]);
  if (node.initializer) node.initializer(value, Philox(0, 0));
  return value;
}

// The ops before the norm only move elements.
void Trial::run_to_norm() {
  for (int i = 0; i < y_.node; ++i) {
    if (graph_.node(i).kind != NodeKind::kOp) continue;
    std::vector<Tensor> outputs = run_node(i, false).outputs;
    for (std::size_t port = 0; port < outputs.size(); ++port) {
      values_[{i, int(port)}] = std::move(outputs[port]);
    }
  }
}

compare::NodeResult Trial::run_node(int node, bool wants_bounds) {
  std::vector<const Tensor*> inputs, errors;
  for (Value v : graph_.node(node).inputs) {
    inputs.push_back(v.valid() ? &values_.at(v) : nullptr);
    const auto error = errors_.find(v);
    const bool counts =
        error != errors_.end() && compare::takes_input_error(graph_.node(node), int(errors.size()));
    errors.push_back(counts ? &error->second : nullptr);
  }
  return compare::reference_node(
      reference_, graph_, node, inputs,
      {.wants_bounds = wants_bounds, .kernels = compare::Kernels::kAny, .input_errors = errors});
}

Tensor Trial::y() {
  if (graph_.node(y_).kind != NodeKind::kOp) return given_.x.clone();
  return std::move(run_node(y_.node, false).outputs[0]);
}

void Trial::run_forward() {
  if (!bounds_.empty() || graph_.node(y_).kind != NodeKind::kOp) return;
  compare::NodeResult result = run_node(y_.node, true);
  for (std::size_t port = 0; port < result.outputs.size(); ++port) {
    const Value v{y_.node, int(port)};
    if (port > 0) errors_[v] = result.bounds[port].clone();
    values_[v] = std::move(result.outputs[port]);
  }
  bounds_ = std::move(result.bounds.largest);
}

Judged Trial::bounded_y() {
  if (graph_.node(y_).kind != NodeKind::kOp) return {given_.x.clone(), filled(given_.x.shape(), 0)};
  run_forward();
  return {values_.at(y_).clone(), bounds_[0].clone()};
}

const Tensor* Trial::gain() const {
  const Value leaf = graph_.find_leaf(kLayer + "/gain");
  return leaf.valid() ? &values_.at(leaf) : nullptr;
}

// Appends the backward of the norm's node, once.
Value Trial::add_backward() {
  if (dy_.valid()) return dx_;
  const Node& node = graph_.node(y_);
  std::vector<Value> gradients(node.outputs.size());
  gradients[0] = dy_ = graph_.input("dy", node.outputs[0]);
  const auto needed = std::make_unique<bool[]>(node.inputs.size());
  for (std::size_t i = 0; i < std::min<std::size_t>(node.inputs.size(), 3); ++i) {
    needed[i] = i == 0 || (node.inputs[i].valid() &&
                           graph_.node(node.inputs[i]).kind == NodeKind::kParameter);
  }
  StateValues states;
  BackwardContext context(graph_, y_.node, gradients, {needed.get(), node.inputs.size()}, states);
  node.op->backward(context);
  dx_ = context.result()[AffineInput::kX];
  if (node.inputs.size() > 1 && needed[1]) dgain_ = context.result()[AffineInput::kGain];
  return dx_;
}

ComparedGradient Trial::gradient(const Tensor& dy, const Tensor* gain) {
  ComparedGradient found;
  if (graph_.node(y_).kind != NodeKind::kOp) {
    found.dx = {dy.clone(), filled(dy.shape(), 0)};
    return found;
  }
  run_forward();
  const Value dx = add_backward();
  values_[dy_] = reshaped(dy, graph_.shape(dy_));
  const Value leaf = graph_.find_leaf(kLayer + "/gain");
  std::optional<Tensor> own;
  if (gain && leaf.valid()) own = std::exchange(values_[leaf], gain->clone());
  compare::NodeResult result = run_node(dx.node, true);
  if (own) values_[leaf] = std::move(*own);
  found.dx = {result.outputs[std::size_t(dx.port)].clone(),
              result.bounds[std::size_t(dx.port)].clone()};
  if (dgain_.valid() && dgain_.node == dx.node) {
    found.dgain = Judged{result.outputs[std::size_t(dgain_.port)].clone(),
                         result.bounds[std::size_t(dgain_.port)].clone()};
  }
  return found;
}

bool Trial::has_state(const std::string& name) const {
  const Value leaf = graph_.find_leaf(kLayer + "/" + name);
  return leaf.valid() && graph_.node(leaf).kind == NodeKind::kState;
}

std::map<std::string, Judged> Trial::states() {
  run_forward();
  std::map<std::string, Judged> found;
  for (const Update& update : graph_.updates()) {
    if (update.next.node != y_.node) continue;
    found[graph_.node(update.leaf).name.substr(kLayer.size() + 1)] = {
        values_.at(update.next).clone(), bounds_[std::size_t(update.next.port)].clone()};
  }
  return found;
}

bool Trial::has_general_bounds() const {
  const Node& node = graph_.node(y_);
  return node.kind != NodeKind::kOp || compare::has_general_rule(node);
}

}  // namespace keel::identify
