#include "src/passes/image_norms.h"

#include "src/ops/norm/layer_norm.h"

namespace keel {

std::vector<int> column_norm_images(const OpInfo& op) {
  if (is_column_norm(op)) return {NormInput::kX};
  if (op.forward == nullptr || !is_column_norm(*op.forward)) return {};
  return {NormInput::kX, input_place(op, "dy")};
}

bool is_layer_norm_of_images(const Node& node) {
  if (node.op == &kLayerNorm) return node.attrs.as<LayerNormAttrs>().axes == 3;
  return node.op == &kLayerNormBackward && node.attrs.as<LayerNormBackwardAttrs>().axes == 3;
}

}  // namespace keel
