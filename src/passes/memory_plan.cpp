#include "src/passes/memory_plan.h"

#include <algorithm>

#include "src/passes/in_place.h"
#include "src/passes/occupancy.h"

namespace keel {
namespace {

std::int64_t most_alive(const std::vector<PlacedBlock>& blocks, int times) {
  std::vector<std::int64_t> change(std::size_t(times) + 1, 0);
  for (const PlacedBlock& block : blocks) {
    change[std::size_t(block.life.first)] += block.bytes;
    change[std::size_t(block.life.last) + 1] -= block.bytes;
  }
  std::int64_t alive = 0, most = 0;
  for (std::int64_t c : change) most = std::max(most, alive += c);
  return most;
}

std::int64_t element_bytes(const Buffer& buffer, const PlanOptions& options) {
  return options.element_bytes ? options.element_bytes(buffer.dtype) : size_of(buffer.dtype);
}

// The span that has the node, or the node alone.
NodeSpan span_of(std::span<const NodeSpan> spans, int node) {
  const auto next = std::ranges::upper_bound(spans, node, {}, &NodeSpan::first);
  if (next == spans.begin() || std::prev(next)->last < node) return {node, node};
  return *std::prev(next);
}

std::vector<PlacedBlock> make_blocks(const Graph& graph, const BufferAssignment& assignment,
                                     const PlanOptions& options) {
  std::vector<PlacedBlock> blocks;
  for (const Buffer& buffer : assignment.buffers) {
    const std::int64_t size = element_bytes(buffer, options);
    const bool in_arena = buffer.kind == Buffer::kTemporary;
    const std::int64_t bytes = in_arena ? aligned_size(checked_multiply(buffer.elements, size)) : 0;
    blocks.push_back({bytes, {buffer.first, std::min(buffer.last, graph.size())}});
  }
  for (std::size_t i = 0; i < options.workspaces.size(); ++i) {
    blocks.push_back({aligned_size(options.workspaces[i]), {int(i), int(i)}});
  }
  for (PlacedBlock& block : blocks) {
    block.life.first = span_of(options.at_once, block.life.first).first;
    block.life.last = span_of(options.at_once, block.life.last).last;
  }
  return blocks;
}

// Where something lies that is `offset` bytes into a buffer, which is at `place` in the arena.
Location location_of(const Buffer& buffer, std::int64_t place, std::int64_t offset) {
  switch (buffer.kind) {
    case Buffer::kAbsent:
      return {};
    case Buffer::kTemporary:
      return {Location::kArena, place + offset, -1};
    case Buffer::kLeaf:
      return {Location::kLeaf, offset, buffer.leaf};
    case Buffer::kConstant:
      return {Location::kConstant, offset, buffer.leaf};
  }
  return {};
}

}  // namespace

MemoryPlan plan_memory(const Graph& graph, const PlanOptions& options) {
  const BufferAssignment assignment = assign_buffers(graph, options.guarded);
  std::vector<PlacedBlock> blocks = make_blocks(graph, assignment, options);
  const int times = graph.size() + 1;  // one for each node, and the end of the run
  MemoryPlan plan;
  plan.copies = assignment.copies;
  plan.in_place = assignment.in_place;
  plan.live_bytes = most_alive(blocks, times);
  for (const PlacedBlock& block : blocks) plan.total_bytes += block.bytes;
  plan.arena_bytes = place_blocks(blocks, times);
  plan.locations = PerValue<Location>(graph);
  for (int i = 0; i < graph.size(); ++i) {
    for (int port = 0; port < int(graph.node(i).outputs.size()); ++port) {
      const auto index = std::size_t(assignment.of[{i, port}]);
      const Buffer& buffer = assignment.buffers[index];
      const std::int64_t offset = assignment.offset[{i, port}] * element_bytes(buffer, options);
      plan.locations[{i, port}] = location_of(buffer, blocks[index].offset, offset);
    }
  }
  plan.workspace_offsets = PerNode<std::int64_t>(graph, -1);
  for (std::size_t i = 0; i < options.workspaces.size(); ++i) {
    if (options.workspaces[i] == 0) continue;
    plan.workspace_offsets[int(i)] = blocks[assignment.buffers.size() + i].offset;
  }
  return plan;
}

}  // namespace keel
