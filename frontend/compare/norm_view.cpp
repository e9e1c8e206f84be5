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

constexpr std::string_view kBackwardSuffix = "_backward";

// Over how many of the last axes of x a norm of rows goes.
std::int64_t row_axes(const JudgedNode& n, std::string_view name) {
  const Attrs& attrs = n.node().attrs;
  const bool back = n.node().op->name.ends_with(kBackwardSuffix);
  if (name == "layer_norm") {
    return back ? attrs.as<LayerNormBackwardAttrs>().axes : attrs.as<LayerNormAttrs>().axes;
  }
  if (name == "rms_norm") {
    return back ? attrs.as<RmsNormBackwardAttrs>().axes : attrs.as<RmsNormAttrs>().axes;
  }
  if (name == "detach_norm") return attrs.as<DetachNormAttrs>().axes;
  if (name == "ada_norm") return attrs.as<AdaNormAttrs>().axes;
  return attrs.as<ScaleNormAttrs>().axes;
}

std::int64_t part_count(const JudgedNode& n) {
  const Attrs& attrs = n.node().attrs;
  return n.node().op->name.ends_with(kBackwardSuffix) ? attrs.as<GroupNormBackwardAttrs>().groups
                                                      : attrs.as<GroupNormAttrs>().groups;
}

}  // namespace

std::string_view forward_name(std::string_view op) {
  return op.ends_with(kBackwardSuffix) ? op.substr(0, op.size() - kBackwardSuffix.size()) : op;
}

NormView::NormView(const JudgedNode& node, bool is_backward)
    : node_(node), places_(norm_places(forward_name(node.node().op->name))) {
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
  const std::string_view name = forward_name(node_.node().op->name);
  switch (places_.groups) {
    case NormGroups::kRows:
      features_ = name == "group_scaling"
                      ? size() / std::max<std::size_t>(group_count_, 1)
                      : std::size_t(row_sizes(x_shape_, row_axes(node_, name)).width);
      return;
    case NormGroups::kParts:
      parts_ = std::size_t(part_count(node_));
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
  if (forward_name(node_.node().op->name) != "power_norm") return;
  const PowerNormAttrs attrs =
      is_backward ? node_.attrs<PowerNormBackwardAttrs>() : node_.attrs<PowerNormAttrs>();
  if (!attrs.is_scaled()) return;
  scaling_ =
      is_backward ? node_.in(PowerNormBackwardInput::kRrms) : node_.out(PowerNormOutput::kRrms);
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
  if (forward_name(node_.node().op->name) != "ada_norm") return 1;
  const auto& attrs = node_.attrs<AdaNormAttrs>();
  return std::abs(attrs.C) * (1 + 2 * std::abs(attrs.k * xhat(e)));
}

}  // namespace keel::compare
