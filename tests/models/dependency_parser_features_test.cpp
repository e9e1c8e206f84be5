// The 48 features, worked out by hand.
#include <doctest/doctest.h>

#include <algorithm>

#include "models/dependency_parser/features.h"

namespace keel::models {
namespace {

using FeatureList = std::vector<std::uint16_t>;

FeatureList nodes_of(const Configuration& c) {
  const FeatureNodes nodes = feature_nodes(c);
  return {nodes.begin(), nodes.end()};
}

// Seven tokens; 1 and 2 hang left from 3, 4 right from it, 5 and 6 right from 4; 7 is to come.
Configuration worked_example() {
  Configuration c;
  c.start(7);
  for (int i = 0; i < 3; ++i) c.apply({});
  c.apply({Move::kLeft, 1});  // 3 -> 2
  c.apply({Move::kLeft, 2});  // 3 -> 1
  c.apply({});
  c.apply({});
  c.apply({Move::kRight, 3});  // 4 -> 5
  c.apply({});
  c.apply({Move::kRight, 4});  // 4 -> 6
  return c;
}

constexpr std::uint16_t kNoNode = 8;

TEST_CASE("features: stack, buffer, and children left and right, worked out by hand") {
  Configuration c = worked_example();
  // The stack is 0 3 4. s1 = 4 has the children 5 and 6 on its right, s2 = 3 has 1 and 2 on its
  // left.
  CHECK(nodes_of(c) == FeatureList{0, 3, 4, 7, kNoNode, kNoNode,              //
                                   kNoNode, 6, kNoNode, 5, kNoNode, kNoNode,  //
                                   1, kNoNode, 2, kNoNode, kNoNode, kNoNode});
  c.apply({Move::kRight, 5});  // 3 -> 4
  // s1 = 3: lc1 1, rc1 4, lc2 2, no rc2, no lc1 of 1, and 6 is rc1 of 4. s2 is ROOT.
  CHECK(nodes_of(c) == FeatureList{kNoNode, 0, 3, 7, kNoNode, kNoNode,  //
                                   1, 4, 2, kNoNode, kNoNode, 6,        //
                                   kNoNode, kNoNode, kNoNode, kNoNode, kNoNode, kNoNode});
  c.apply({});
  CHECK(nodes_of(c) == FeatureList{0, 3, 7, kNoNode, kNoNode, kNoNode,                    //
                                   kNoNode, kNoNode, kNoNode, kNoNode, kNoNode, kNoNode,  //
                                   1, 4, 2, kNoNode, kNoNode, 6});
  c.start(2);
  CHECK(nodes_of(c)[2] == 0);
  CHECK(nodes_of(c)[3] == 1);
  CHECK(nodes_of(c)[4] == 2);
  CHECK(std::ranges::count(nodes_of(c), 3) == 15);
}

TEST_CASE("features: leftmost of the leftmost child") {
  Configuration c;
  c.start(3);
  c.apply({});
  c.apply({});
  c.apply({Move::kLeft, 1});  // 2 -> 1
  c.apply({});
  c.apply({Move::kLeft, 1});  // 3 -> 2
  CHECK(nodes_of(c) == FeatureList{4, 0, 3, 4, 4, 4, 2, 4, 4, 4, 1, 4, 4, 4, 4, 4, 4, 4});
}

TEST_CASE("features: words, then tags, then the labels of the arcs to the children") {
  Configuration c = worked_example();
  c.apply({Move::kRight, 5});
  // Row 10 + i is the word of node i, 20 + i its tag; label l is row 30 + l.
  FeatureRows rows;
  for (int node = 0; node <= kNoNode; ++node) {
    rows.words.push_back(10 + node);
    rows.tags.push_back(20 + node);
  }
  std::vector<std::int32_t> features(kFeatures);
  write_features(feature_nodes(c), rows, c.labels(), 30, features.data());
  CHECK(features == std::vector<std::int32_t>{
                        18, 10, 13, 17, 18, 18, 11, 14, 12, 18, 18, 16, 18, 18, 18, 18, 18, 18,  //
                        28, 20, 23, 27, 28, 28, 21, 24, 22, 28, 28, 26, 28, 28, 28, 28, 28, 28,  //
                        32, 35, 31, 30, 30, 34, 30, 30, 30, 30, 30, 30});
}

}  // namespace
}  // namespace keel::models
