#include "src/passes/image_norms.h"

#include <utility>

#include "src/ops/norm/batch_norm.h"
#include "src/ops/norm/batch_renorm.h"
#include "src/ops/norm/layer_norm.h"
#include "src/ops/norm/mabn.h"
#include "src/ops/norm/pn_v.h"
#include "src/ops/norm/power_norm.h"

namespace keel {

std::vector<int> column_norm_images(const OpInfo& op) {
  static const std::pair<const OpInfo*, int> kBackwards[] = {
      {&kBatchNormBackward, BatchNormBackwardInput::kDy},
      {&kBatchRenormBackward, BatchRenormBackwardInput::kDy},
      {&kPnVBackward, PnVBackwardInput::kDy},
      {&kPowerNormBackward, PowerNormBackwardInput::kDy},
      {&kMabnBackward, MabnBackwardInput::kDy}};
  for (const OpInfo* forward : {&kBatchNorm, &kBatchRenorm, &kPnV, &kPowerNorm, &kMabn}) {
    if (&op == forward) return {NormInput::kX};
  }
  for (const auto& [backward, dy] : kBackwards) {
    if (&op == backward) return {NormInput::kX, dy};
  }
  return {};
}

bool is_layer_norm_of_images(const Node& node) {
  if (node.op == &kLayerNorm) return node.attrs.as<LayerNormAttrs>().axes == 3;
  return node.op == &kLayerNormBackward && node.attrs.as<LayerNormBackwardAttrs>().axes == 3;
}

}  // namespace keel
