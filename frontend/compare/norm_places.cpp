// The places of the terms of each norm.
#include "frontend/compare/norm_view.h"
#include "src/ops/norm/batch_norm.h"
#include "src/ops/norm/batch_renorm.h"
#include "src/ops/norm/group_norm.h"
#include "src/ops/norm/group_scaling.h"
#include "src/ops/norm/instance_norm.h"
#include "src/ops/norm/layer_norm.h"
#include "src/ops/norm/mabn.h"
#include "src/ops/norm/pn_v.h"
#include "src/ops/norm/power_norm.h"
#include "src/ops/norm/rms_norm.h"
#include "src/ops/norm/scale_norm.h"

namespace keel::compare {
namespace {

// A norm with gain and bias that subtracts a mean.
NormPlaces centred(NormGroups groups) {
  using Back = CentredAffineBackwardInput;
  return {.groups = groups,
          .gain = AffineInput::kGain,
          .bias = AffineInput::kBias,
          .mean = CentredOutput::kMean,
          .rstd = CentredOutput::kRstd,
          .dy = Back::kDy,
          .d_gain = Back::kGain,
          .d_mean = Back::kMean,
          .d_rstd = Back::kRstd};
}

NormPlaces plain_centred() {
  using Back = CentredBackwardInput;
  return {.mean = CentredOutput::kMean,
          .rstd = CentredOutput::kRstd,
          .dy = Back::kDy,
          .d_mean = Back::kMean,
          .d_rstd = Back::kRstd};
}

NormPlaces instances() {
  NormPlaces p = centred(NormGroups::kSequences);
  p.mask = InstanceNormInput::kMask;
  p.d_mask = InstanceNormBackwardInput::kMask;
  return p;
}

NormPlaces batches() {
  NormPlaces p = centred(NormGroups::kColumns);
  p.mask = BatchNormInput::kMask;
  p.d_mask = BatchNormBackwardInput::kMask;
  return p;
}

NormPlaces renormed() {
  using Back = BatchRenormBackwardInput;
  NormPlaces p = centred(NormGroups::kColumns);
  p.mask = BatchRenormInput::kMask;
  p.dy = Back::kDy;
  p.r = Back::kR;
  p.d_mask = Back::kMask;
  return p;
}

NormPlaces root_mean_square() {
  using Back = RmsNormBackwardInput;
  return {.gain = AffineInput::kGain,
          .bias = AffineInput::kBias,
          .rstd = RmsNormOutput::kRrms,
          .dy = Back::kDy,
          .d_gain = Back::kGain,
          .d_rstd = Back::kRrms};
}

NormPlaces scaled_length() {
  using Back = ScaleNormBackwardInput;
  return {.gain = ScaleNormInput::kGain,
          .rstd = ScaleNormOutput::kRnorm,
          .dy = Back::kDy,
          .d_gain = Back::kGain,
          .d_rstd = Back::kRnorm};
}

NormPlaces scaled_parts() {
  using Back = GroupScalingBackwardInput;
  return {.rstd = GroupScalingOutput::kRrms, .dy = Back::kDy, .d_rstd = Back::kRrms};
}

NormPlaces quadratic() {
  using Back = PnVBackwardInput;
  return {.groups = NormGroups::kColumns,
          .gain = PnVInput::kGain,
          .bias = PnVInput::kBias,
          .rstd = PnVOutput::kRpsi,
          .mask = PnVInput::kMask,
          .dy = Back::kDy,
          .d_gain = Back::kGain,
          .d_rstd = Back::kRpsi,
          .d_mask = Back::kMask};
}

NormPlaces averaged() {
  using Back = MabnBackwardInput;
  return {.groups = NormGroups::kColumns,
          .gain = MabnInput::kGain,
          .bias = MabnInput::kBias,
          .rstd = MabnOutput::kRstd,
          .mask = MabnInput::kMask,
          .dy = Back::kDy,
          .d_gain = Back::kGain,
          .d_rstd = Back::kRstd,
          .d_mask = Back::kMask,
          .r = Back::kR};
}

NormPlaces power() {
  using Back = PowerNormBackwardInput;
  return {.groups = NormGroups::kColumns,
          .gain = PowerNormInput::kGain,
          .bias = PowerNormInput::kBias,
          .rstd = PowerNormOutput::kRpsi,
          .mask = PowerNormInput::kMask,
          .dy = Back::kDy,
          .d_gain = Back::kGain,
          .d_rstd = Back::kRpsi,
          .d_mask = Back::kMask,
          .factor = Back::kRdx,
          .slope = Back::kNu};
}

}  // namespace

const NormPlaces& norm_places(std::string_view forward_op) {
  static const std::map<std::string_view, NormPlaces> all{
      {"layer_norm", centred(NormGroups::kRows)},
      {"detach_norm", plain_centred()},
      {"ada_norm", plain_centred()},
      {"rms_norm", root_mean_square()},
      {"scale_norm", scaled_length()},
      {"group_scaling", scaled_parts()},
      {"group_norm", centred(NormGroups::kParts)},
      {"instance_norm", instances()},
      {"batch_norm", batches()},
      {"batch_renorm", renormed()},
      {"pn_v", quadratic()},
      {"mabn", averaged()},
      {"power_norm", power()}};
  const auto found = all.find(forward_op);
  check(found != all.end(), ErrorKind::kInternal, "{} is no norm of x", forward_op);
  return found->second;
}

}  // namespace keel::compare
