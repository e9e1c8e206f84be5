#include "models/dependency_parser/features.h"

namespace keel::models {

FeatureNodes feature_nodes(const Configuration& c) {
  FeatureNodes nodes;
  std::size_t count = 0;
  const auto add = [&](std::int32_t node) { nodes[count++] = static_cast<std::uint16_t>(node); };
  for (std::size_t depth = 3; depth >= 1; --depth) add(c.stack(depth));
  for (std::int32_t place = 1; place <= 3; ++place) add(c.buffer(place));
  for (const std::int32_t node : {c.stack(1), c.stack(2)}) {
    const std::int32_t left = c.left_child(node, 0), right = c.right_child(node, 0);
    for (const std::int32_t child : {left, right, c.left_child(node, 1), c.right_child(node, 1),
                                     c.left_child(left, 0), c.right_child(right, 0)}) {
      add(child);
    }
  }
  return nodes;
}

void write_features(const FeatureNodes& nodes, const FeatureRows& rows,
                    std::span<const std::int32_t> labels, std::int32_t first_label,
                    std::int32_t* out) {
  for (const std::uint16_t node : nodes) *out++ = rows.words[node];
  for (const std::uint16_t node : nodes) *out++ = rows.tags[node];
  for (std::size_t i = kFirstChild; i < kFeatureNodes; ++i) *out++ = first_label + labels[nodes[i]];
}

}  // namespace keel::models
