#include "src/passes/memory_plan.h"

#include <algorithm>
#include <numeric>

#include "src/passes/in_place.h"

namespace keel {
namespace {

struct Block {
  std::int64_t bytes = 0;
  int first = 0, last = 0;
  std::int64_t offset = 0;
};

std::int64_t round_up(std::int64_t bytes) {
  constexpr auto kUnit = static_cast<std::int64_t>(kAlignment);
  return (bytes + kUnit - 1) / kUnit * kUnit;
}

bool overlaps(const Block& a, const Block& b) { return a.first <= b.last && b.first <= a.last; }

// Largest block first, each at the lowest offset that no living block covers.
std::int64_t place_blocks(std::vector<Block>& blocks) {
  std::vector<std::size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order,
                           [&](auto a, auto b) { return blocks[a].bytes > blocks[b].bytes; });
  std::vector<Block> placed;  // by offset
  std::int64_t top = 0;
  for (std::size_t index : order) {
    Block& block = blocks[index];
    std::int64_t offset = 0;
    for (const Block& other : placed) {
      if (!overlaps(block, other)) continue;
      if (offset + block.bytes <= other.offset) break;
      offset = std::max(offset, other.offset + other.bytes);
    }
    block.offset = offset;
    top = std::max(top, offset + block.bytes);
    const auto where = std::ranges::upper_bound(placed, offset, {}, &Block::offset);
    placed.insert(where, block);
  }
  return top;
}

std::int64_t most_alive(const std::vector<Block>& blocks, int nodes) {
  std::vector<std::int64_t> change(std::size_t(nodes) + 2, 0);
  for (const Block& block : blocks) {
    change[std::size_t(block.first)] += block.bytes;
    change[std::size_t(block.last) + 1] -= block.bytes;
  }
  std::int64_t alive = 0, most = 0;
  for (std::int64_t c : change) most = std::max(most, alive += c);
  return most;
}

std::vector<Block> make_blocks(const Graph& graph, const BufferAssignment& assignment,
                               const PlanOptions& options) {
  std::vector<Block> blocks;
  for (const Buffer& buffer : assignment.buffers) {
    const std::int64_t size =
        options.element_bytes ? options.element_bytes(buffer.dtype) : size_of(buffer.dtype);
    const bool in_arena = buffer.kind == Buffer::kTemporary;
    const std::int64_t bytes = in_arena ? round_up(checked_multiply(buffer.elements, size)) : 0;
    blocks.push_back({bytes, buffer.first, std::min(buffer.last, graph.size())});
  }
  for (std::size_t i = 0; i < options.workspaces.size(); ++i) {
    blocks.push_back({round_up(options.workspaces[i]), int(i), int(i)});
  }
  return blocks;
}

Location location_of(const Buffer& buffer, std::int64_t offset) {
  switch (buffer.kind) {
    case Buffer::kAbsent:
      return {};
    case Buffer::kTemporary:
      return {Location::kArena, offset, -1};
    case Buffer::kLeaf:
      return {Location::kLeaf, 0, buffer.leaf};
    case Buffer::kConstant:
      return {Location::kConstant, 0, buffer.leaf};
  }
  return {};
}

}  // namespace

MemoryPlan plan_memory(const Graph& graph, const PlanOptions& options) {
  const BufferAssignment assignment = assign_buffers(graph, options.guarded);
  std::vector<Block> blocks = make_blocks(graph, assignment, options);
  MemoryPlan plan;
  plan.copies = assignment.copies;
  plan.in_place = assignment.in_place;
  plan.live_bytes = most_alive(blocks, graph.size());
  for (const Block& block : blocks) plan.total_bytes += block.bytes;
  plan.arena_bytes = place_blocks(blocks);
  for (const auto& ports : assignment.of) {
    plan.locations.emplace_back();
    for (int buffer : ports) {
      const auto index = std::size_t(buffer);
      plan.locations.back().push_back(location_of(assignment.buffers[index], blocks[index].offset));
    }
  }
  plan.workspace_offsets.assign(std::size_t(graph.size()), -1);
  for (std::size_t i = 0; i < options.workspaces.size(); ++i) {
    if (options.workspaces[i] == 0) continue;
    plan.workspace_offsets[i] = blocks[assignment.buffers.size() + i].offset;
  }
  return plan;
}

}  // namespace keel
