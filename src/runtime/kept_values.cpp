#include "src/runtime/kept_values.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "src/ops/shard_parts.h"
#include "src/passes/occupancy.h"

namespace keel {
namespace {

class KeptFinder {
 public:
  KeptFinder(const Graph& graph, const MemoryPlan& plan,
             const std::function<std::int64_t(DType)>& element_bytes)
      : graph_(graph), plan_(plan), element_bytes_(element_bytes), part_(parts_of(graph)) {
    const auto collectives = std::ranges::count_if(graph.outputs(), [](const NamedValue& output) {
      return output.name.starts_with(kCollective);
    });
    parts_ = int(collectives) + 1;
    collectives_.resize(std::size_t(parts_));
  }

  KeptValues run() {
    for (int i = 0; i < graph_.size(); ++i) {
      for (const Value v : graph_.node(i).inputs) {
        if (v.valid()) read(v, part_[i]);
      }
    }
    return placed();
  }

 private:
  // An input is fed before the first part, and the plan leaves its place to no other value.
  int part_of(Value v) const { return graph_.node(v).kind == NodeKind::kInput ? 0 : part_[v.node]; }

  void read(Value v, int part) {
    if (graph_.node(v).kind == NodeKind::kInput) {
      if (const Value given = given_for(graph_, v); given.valid()) {
        collectives_[std::size_t(part)].insert(part_[given.node]);
        return;
      }
    }
    const bool is_kept = plan_.at(v).kind == Location::kArena && part_of(v) < part;
    if (is_kept) readers_[shown_by(v)].insert(part);
  }

  // A view that was made in the part of what it shows is kept as that.
  Value shown_by(Value v) const {
    while (is_view(graph_.node(v)) && graph_.node(v).op->view == View::kWhole) {
      const Value source = graph_.node(v).inputs[0];
      if (part_of(source) != part_of(v)) break;
      v = source;
    }
    return v;
  }

  std::int64_t bytes_of(Value v) const {
    return checked_multiply(graph_.shape(v).elements(), element_bytes_(graph_.type(v).dtype));
  }

  KeptValues placed() const {
    std::vector<PlacedBlock> blocks;
    for (const auto& [v, parts] : readers_) {
      // A part copies back before it copies away.
      const Lifetime life{2 * part_of(v) + 1, 2 * *parts.rbegin()};
      blocks.push_back({aligned_size(bytes_of(v)), life});
    }
    KeptValues kept;
    kept.bytes = place_blocks(blocks, 2 * parts_);
    kept.saved.resize(std::size_t(parts_));
    kept.restored.resize(std::size_t(parts_));
    auto block = blocks.begin();
    for (const auto& [v, parts] : readers_) {
      const KeptValues::Copy copy{plan_.at(v).offset, block++->offset, bytes_of(v)};
      kept.saved[std::size_t(part_of(v))].push_back(copy);
      for (const int part : parts) kept.restored[std::size_t(part)].push_back(copy);
    }
    for (const auto& read : collectives_) kept.collectives.emplace_back(read.begin(), read.end());
    return kept;
  }

  const Graph& graph_;
  const MemoryPlan& plan_;
  const std::function<std::int64_t(DType)>& element_bytes_;
  PerNode<int> part_;
  int parts_ = 1;
  std::map<Value, std::set<int>> readers_;  // the later parts that read a value
  std::vector<std::set<std::int64_t>> collectives_;
};

}  // namespace

KeptValues find_kept_values(const Graph& graph, const MemoryPlan& plan,
                            const std::function<std::int64_t(DType)>& element_bytes) {
  return KeptFinder(graph, plan, element_bytes).run();
}

}  // namespace keel
