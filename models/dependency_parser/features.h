// The features of a configuration that the network reads: 48 (Chen & Manning 2014).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "models/dependency_parser/transitions.h"

namespace keel::models {

// In this order: s3 s2 s1 b1 b2 b3; of s1 the leftmost child lc1, the rightmost rc1, second
// leftmost lc2, second rightmost rc2, lc1 of lc1 and rc1 of rc1; the same six of s2.
inline constexpr std::size_t kFeatureNodes = 18, kFirstChild = 6;
// The words and the tags of all nodes, and the labels of the arcs to the children.
inline constexpr std::size_t kFeatures = 3 * kFeatureNodes - kFirstChild;

// Words, tags or labels: the columns of the features that hold them, and their rows of the table.
struct FeaturePart {
  std::int64_t column = 0, columns = 0;
  std::int64_t row = 0, rows = 0;
  std::int32_t none = 0;  // the row for "there is none"
};
using FeatureParts = std::array<FeaturePart, 3>;

// Nodes of a configuration; 16 bits suffice to number those of a sentence.
using FeatureNodes = std::array<std::uint16_t, kFeatureNodes>;
FeatureNodes feature_nodes(const Configuration& configuration);

// The rows of the table of features for a sentence, by node: 0 is ROOT, n + 1 "none".
struct FeatureRows {
  std::vector<std::int32_t> words, tags;
};

// The 48 rows of the table. Labels are those of the arcs so far, by node, and row first_label + l
// is that of label l.
void write_features(const FeatureNodes& nodes, const FeatureRows& rows,
                    std::span<const std::int32_t> labels, std::int32_t first_label,
                    std::int32_t* out);

}  // namespace keel::models
