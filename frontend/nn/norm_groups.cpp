// Norms of groups of features within a row or an image.
#include "frontend/nn/norm_table.h"
#include "src/ops/norm/group_norm.h"
#include "src/ops/norm/group_scaling.h"
#include "src/ops/norm/instance_norm.h"

namespace keel::nn {
namespace {

// 32 groups, as Wu & He 2018 and most libraries with a default have. One would be layernorm under
// another name. A width that they do not divide is refused.
constexpr std::int64_t kUsualGroups = 32;
constexpr const char* kOneGroup = "groups=1";

struct GroupNormOptions : AffineOptions {
  std::int64_t groups = kUsualGroups;
  double eps = 1e-5;
  bool unbiased = false, eps_outside = false;

  static constexpr bool kBatchType = false;
  static constexpr auto fields() {
    using T = GroupNormOptions;
    return std::tuple_cat(
        std::tuple{field("groups", &T::groups), field("eps", &T::eps), field("gain", &T::gain),
                   field("bias", &T::bias), field("unbiased", &T::unbiased),
                   field("eps_outside", &T::eps_outside)},
        first_values());
  }
  Value apply(NormStates& memory, Value value) const {
    const Columns columns(memory.net, value);
    const Value y = ops::group_norm(
        memory.graph, columns.x, memory.affine(columns.channels, *this),
        {.groups = groups, .eps = eps, .unbiased = unbiased, .eps_outside = eps_outside});
    return columns.restore(memory.net, y);
  }
};

// Sequences (n, steps, features) have an op of their own; for images this is a group norm with each
// channel as a group.
struct InstanceNormOptions : AffineOptions {
  double eps = 1e-5;

  InstanceNormOptions() { gain = bias = false; }
  static constexpr bool kBatchType = false;
  static constexpr auto fields() {
    using T = InstanceNormOptions;
    return std::tuple_cat(
        std::tuple{field("eps", &T::eps), field("gain", &T::gain), field("bias", &T::bias)},
        first_values());
  }
  Value apply(NormStates& memory, Value x, Value mask) const {
    const Shape shape = memory.graph.shape(x);
    const bool image = shape.rank() == 4;
    check(image || shape.rank() == 3, ErrorKind::kUsage,
          "[instancenorm] x: expected (n, steps, features) or images (n, c, h, w), got {}",
          shape.text());
    check(!image || !mask.valid(), ErrorKind::kUsage,
          "[instancenorm] mask: expected none for images");
    const Shape features{image ? shape[1] : shape[2]};
    const ops::NormAffine affine = memory.affine(features, *this);
    if (!image) return ops::instance_norm(memory.graph, x, affine, mask, {.eps = eps});
    return ops::group_norm(memory.graph, x, affine, {.groups = shape[1], .eps = eps});
  }
};

struct GroupScalingOptions {
  std::int64_t groups = kUsualGroups;
  double eps = 1e-5;

  static constexpr bool kBatchType = false;
  static constexpr auto fields() {
    using T = GroupScalingOptions;
    return std::tuple{field("groups", &T::groups), field("eps", &T::eps)};
  }
  bool has_bias() const { return false; }
  Value apply(NormStates& memory, Value x) const {
    const Shape shape = memory.graph.shape(x);  // an image as a whole counts as a row
    if (shape.rank() == 4) x = ops::reshape(memory.graph, x, {shape[0], shape.elements(1, 4)});
    const Value y = ops::group_scaling(memory.graph, x, {.groups = groups, .eps = eps});
    return ops::reshape(memory.graph, y, shape);
  }
};

}  // namespace

std::span<const NormRow> group_norms() {
  static const std::vector<NormRow> rows{
      {{"groupnorm", "y = gain (x - mean) / sqrt(var + eps) + bias, over a group of channels",
        "gain, bias", "-", "exact", "Wu & He 2018",
        "PyTorch's GroupNorm has no default for its groups, and its channels are axis 1 of every "
        "x; "
        "here they are the last axis, but of images",
        kOneGroup},
       8,
       "",
       make_norm<GroupNormOptions>},
      {{"instancenorm",
        "y = gain (x - mean) / sqrt(var + eps) + bias, over a sample's time or area", "gain, bias",
        "-", "exact", "Ulyanov et al. 2016",
        "PyTorch's InstanceNorm1d takes sequences as (n, features, steps), here they are (n, "
        "steps, "
        "features); eps and the absent gain and bias are the same"},
       11,
       "",
       make_norm<InstanceNormOptions>},
      {{"groupscaling", "y = x / sqrt(mean(x^2) + eps), over a group of a row", "-", "-", "exact",
        "Shen et al. 2020, appendix A.1", "Shen et al.'s program has as many groups as heads",
        kOneGroup},
       17,
       "",
       make_norm<GroupScalingOptions>},
      {{"layerscaling", "y = x / sqrt(mean(x^2) + eps), over a row", "-", "-", "exact",
        "Shen et al. 2020, appendix A.1"},
       18,
       "groups=1",
       make_norm<GroupScalingOptions>},
  };
  return rows;
}

}  // namespace keel::nn
