#include "frontend/compare/norm_view.h"

#include <cmath>

#include "src/ops/norm/ada_norm.h"
#include "src/ops/norm/detach_norm.h"
#include "src/ops/norm/group_norm.h"
#include "src/ops/norm/group_scaling.h"
#include "src/ops/norm/instance_norm.h"
#include "src/ops/norm/layer_norm.h"
#include "src/ops/norm/power_norm.h"
#include "src/ops/norm/rms_norm.h"
#include "src/ops/norm/scale_norm.h"
#include "src/ops/norm/sizes.h"

namespace keel::compare {
namespace {

// Over how many of the last axes of x a norm of rows goes.
std::int64_t row_axes(const Node& node) {
  const Attrs& attrs = node.attrs;
  if (node.op == &kLayerNorm) return attrs.as<LayerNormAttrs>().axes;
  if (node.op == &kLayerNormBackward) return attrs.as<LayerNormBackwardAttrs>().axes;
  if (node.op == &kRmsNorm) return attrs.as<RmsNormAttrs>().axes;
  if (node.op == &kRmsNormBackward) return attrs.as<RmsNormBackwardAttrs>().axes;
  const OpInfo* forward = forward_norm(*node.op);
  if (forward == &kDetachNorm) return attrs.as<DetachNormAttrs>().axes;
  if (forward == &kAdaNorm) return attrs.as<AdaNormAttrs>().axes;
  return attrs.as<ScaleNormAttrs>().axes;
}

std::int64_t part_count(const Node& node) {
  return node.op == &kGroupNorm ? node.attrs.as<GroupNormAttrs>().groups
                                : node.attrs.as<GroupNormBackwardAttrs>().groups;
}

}  // namespace

NormPlaces::NormPlaces(const OpInfo& op) {
  const OpInfo* forward = forward_norm(op);
  check(forward != nullptr, ErrorKind::kInternal, "{} is no norm of x", op.name);
  groups = forward->norm->groups;
  gain = input_place(*forward, "gain");
  bias = input_place(*forward, "bias");
  mask = input_place(*forward, "mask");
  mean = output_place(*forward, "mean");
  rstd = output_place(*forward, "rstd");
  if (forward == &op) return;
  dy = input_place(op, "dy");
  d_gain = input_place(op, "gain");
  d_mean = input_place(op, "mean");
  d_rstd = input_place(op, "rstd");
  d_mask = input_place(op, "mask");
  factor = input_place(op, "rdx");
  r = input_place(op, "r");
  slope = input_place(op, "nu");
}

NormView::NormView(const ComparedNode& node, bool is_backward)
    : node_(node), places_(*node.node().op) {
  // The last norm to be asked for x may have none: then dy has its shape.
  x_shape_ = node.has(0) ? node.input(0).shape() : node.input(places_.dy).shape();
  if (node.has(0)) x_ = node.in(0);
  const auto take = [&](int place) {
    if (place < 0) return std::span<const double>{};
    if (!is_backward) return node.out(place);
    return node.has(place) ? node.in(place) : std::span<const double>{};
  };
  mean_ = take(is_backward ? places_.d_mean : places_.mean);
  rstd_ = take(is_backward ? places_.d_rstd : places_.rstd);
  const int gain = is_backward ? places_.d_gain : places_.gain;
  if (gain >= 0 && node.has(gain)) gain_ = node.in(gain);
  mask_ = is_backward ? places_.d_mask : places_.mask;
  group_count_ = rstd_.size();
  set_sizes();
  set_scaling(is_backward);
}

void NormView::set_sizes() {
  switch (places_.groups) {
    case NormGroups::kRows:
      features_ = forward_norm(*node_.node().op) == &kGroupScaling
                      ? size() / std::max<std::size_t>(group_count_, 1)
                      : std::size_t(row_sizes(x_shape_, row_axes(node_.node())).width);
      return;
    case NormGroups::kParts:
      parts_ = std::size_t(part_count(node_.node()));
      [[fallthrough]];
    case NormGroups::kColumns:
      features_ = std::size_t(column_sizes(x_shape_).channels);
      inner_ = std::size_t(column_sizes(x_shape_).inner);
      return;
    case NormGroups::kSequences:
      features_ = std::size_t(sequence_sizes(x_shape_).channels);
      block_ = std::size_t(sequence_sizes(x_shape_).steps) * features_;
      return;
  }
}

void NormView::set_scaling(bool is_backward) {
  if (forward_norm(*node_.node().op) != &kPowerNorm) return;
  const PowerNormAttrs attrs =
      is_backward ? node_.attrs<PowerNormBackwardAttrs>() : node_.attrs<PowerNormAttrs>();
  if (!attrs.is_scaled()) return;
  scaling_ = is_backward ? node_.in(PowerNormBackwardInput::kRowRstd)
                         : node_.out(PowerNormOutput::kRowRstd);
  scaling_width_ = features_ / std::size_t(attrs.groups);
}

std::size_t NormView::feature(std::size_t e) const { return e / inner_ % features_; }

std::size_t NormView::group(std::size_t e) const {
  switch (places_.groups) {
    case NormGroups::kRows:
      return e / features_;
    case NormGroups::kParts:
      return e / (features_ * inner_) * parts_ + feature(e) / (features_ / parts_);
    case NormGroups::kSequences:
      return e / block_ * features_ + e % features_;
    case NormGroups::kColumns:
      break;
  }
  return feature(e);
}

double NormView::xhat(std::size_t e) const {
  if (x_.empty()) return 0;
  const std::size_t k = group(e);
  return (x_[e] * (is_scaled() ? scaling(e) : 1) - mean(k)) * rstd_[k];
}

bool NormView::is_kept(std::size_t e) const {
  if (mask_ < 0 || !node_.has(mask_)) return true;
  return node_.input(mask_).as<std::uint8_t>()[e / features_] != 0;
}

double NormView::phi(std::size_t e) const {
  if (forward_norm(*node_.node().op) != &kAdaNorm) return 1;
  const auto& attrs = node_.attrs<AdaNormAttrs>();
  return std::abs(attrs.C) * (1 + 2 * std::abs(attrs.k * xhat(e)));
}

}  // namespace keel::compare
