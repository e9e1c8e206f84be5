#include "backends/onednn/kernels/broadcast.h"

namespace keel::onednn {
namespace {

using Strides = std::array<std::int64_t, Shape::kMaxRank>;

// Strides of an operand along the output's axes; 0 where it is stretched.
Strides stretched_strides(const Shape& operand, const Shape& out) {
  const Strides own = operand.strides();
  Strides strides{};
  const int lead = out.rank() - operand.rank();
  for (int axis = lead; axis < out.rank(); ++axis) {
    if (operand[axis - lead] > 1) strides[std::size_t(axis)] = own[std::size_t(axis - lead)];
  }
  return strides;
}

// An axis of the output, with every operand's stride along it.
struct Axis {
  std::int64_t size;
  std::vector<std::int64_t> strides;

  // Whether stepping along this axis is the same as passing the end of `next`, for every operand.
  bool continues(const Axis& next) const {
    for (std::size_t i = 0; i < strides.size(); ++i) {
      if (strides[i] != next.strides[i] * next.size) return false;
    }
    return true;
  }
};

// The output's axes without those of size 1, neighbours merged where all operands allow it.
std::vector<Axis> merged_axes(const Shape& out, const std::vector<Strides>& strides) {
  std::vector<Axis> axes;
  for (int i = 0; i < out.rank(); ++i) {
    if (out[i] == 1) continue;
    Axis axis{out[i], {}};
    for (const Strides& s : strides) axis.strides.push_back(s[std::size_t(i)]);
    if (!axes.empty() && axes.back().continues(axis)) {
      axis.size *= axes.back().size;
      axes.back() = axis;
    } else {
      axes.push_back(axis);
    }
  }
  return axes;
}

}  // namespace

Broadcast::Broadcast(const Shape& out, const std::vector<Shape>& operands) {
  std::vector<Strides> strides;
  for (const Shape& operand : operands) strides.push_back(stretched_strides(operand, out));
  std::vector<Axis> axes = merged_axes(out, strides);
  if (axes.empty()) axes.push_back({1, std::vector<std::int64_t>(operands.size(), 0)});
  inner_ = axes.back().size;
  rank_ = int(axes.size()) - 1;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    Stretched stretched;
    const bool is_whole = operands[i].elements() == out.elements();
    const bool is_scalar = operands[i].elements() == 1;
    stretched.form = is_whole    ? Stretched::Form::kWhole
                     : is_scalar ? Stretched::Form::kScalar
                                 : Stretched::Form::kPart;
    stretched.step = axes.back().strides[i];
    for (int axis = 0; axis < rank_; ++axis) {
      stretched.outer[std::size_t(axis)] = axes[std::size_t(axis)].strides[i];
      sizes_[std::size_t(axis)] = axes[std::size_t(axis)].size;
    }
    operands_.push_back(stretched);
  }
}

}  // namespace keel::onednn
