#include "src/runtime/shard_tree.h"

namespace keel {
namespace {

void append_subtrees(ShardRange tree, ShardRange within, std::vector<ShardRange>& found) {
  if (tree.end <= within.first || tree.first >= within.end) return;
  if (tree.first >= within.first && tree.end <= within.end) {
    found.push_back(tree);
    return;
  }
  append_subtrees({tree.first, tree.middle()}, within, found);
  append_subtrees({tree.middle(), tree.end}, within, found);
}

}  // namespace

ShardRange shards_of_rank(std::int64_t shards, int rank, int ranks) {
  return {shards * rank / ranks, shards * (rank + 1) / ranks};
}

std::vector<ShardRange> whole_subtrees(ShardRange within, std::int64_t shards) {
  std::vector<ShardRange> found;
  append_subtrees({0, shards}, within, found);
  return found;
}

}  // namespace keel
