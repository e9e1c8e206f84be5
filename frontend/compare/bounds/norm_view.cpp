#include "frontend/compare/bounds/norm_view.h"

#include <algorithm>

#include "src/ops/norm/sizes.h"

namespace keel::compare {
NormPlaces::NormPlaces(const OpInfo& op) {
  const OpInfo* forward = forward_norm(op);
  check(forward != nullptr, ErrorKind::kInternal, "{} is no norm of x", op.name);
  groups = forward->norm->groups;
  gain = input_place(*forward, "gain");
  bias = input_place(*forward, "bias");
  mask = input_place(*forward, "mask");
  mean = output_place(*forward, "mean");
  rstd = output_place(*forward, "rstd");
  const auto place = forward == &op ? output_place : input_place;
  r = place(op, "r");
  d = place(op, "d");
  row_rstd = place(op, "row_rstd");
  if (forward == &op) return;
  dy = input_place(op, "dy");
  d_gain = input_place(op, "gain");
  d_mean = input_place(op, "mean");
  d_rstd = input_place(op, "rstd");
  d_mask = input_place(op, "mask");
  factor = input_place(op, "rdx");
  if (r < 0) r = input_place(op, "ratio");
  slope = input_place(op, "nu");
  rows = input_place(op, "gz");
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
  offset_ = node.node().attrs.number("offset").value_or(0);
  group_count_ = rstd_.size();
  scaling_ = take(places_.row_rstd);
  set_sizes();
}

void NormView::set_sizes() {
  switch (places_.groups) {
    case NormGroups::kElements:  // has no statistics, and rules of its own
    case NormGroups::kRows:
      features_ = size() / std::max<std::size_t>(group_count_, 1);
      return;
    case NormGroups::kParts:
      parts_ = std::size_t(node_.node().attrs.number("groups").value());
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

std::size_t NormView::feature(std::size_t e) const { return e / inner_ % features_; }

std::size_t NormView::group(std::size_t e) const {
  switch (places_.groups) {
    case NormGroups::kElements:
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
  const auto largest = forward_norm(*node_.node().op)->norm->largest_factor;
  return largest == nullptr ? 1 : largest(node_.node().attrs, xhat(e));
}

}  // namespace keel::compare
