// A program that runs in parts, between which instances of its graph meet.
#include <algorithm>

#include "src/ops/shard_parts.h"
#include "src/runtime/program.h"

namespace keel {
namespace {

TensorRef bytes_at(const Memory& memory, std::int64_t offset, std::int64_t bytes) {
  return {memory.address() + offset, {DType::kU8, Shape{bytes}}};
}

}  // namespace

// The first node that reads an input, or the end.
int Program::first_reader(const std::string& input) const {
  const auto leaf = inputs_.find(input);
  if (leaf == inputs_.end()) return graph_.size();
  for (int i = 0; i < graph_.size(); ++i) {
    if (std::ranges::find(graph_.node(i).inputs, leaf->second) != graph_.node(i).inputs.end()) {
      return i;
    }
  }
  return graph_.size();
}

void Program::find_collectives() {
  for (const NamedValue& output : graph_.outputs()) {
    if (!output.name.starts_with(kCollective)) continue;
    check(first_reader(output.name) > output.value.node, ErrorKind::kInternal,
          "{} is read before it is given", output.name);
    // Copies of updates, which have no node, come last.
    const auto end = std::ranges::find_if(kernel_nodes_, [&](const NodeSpan& nodes) {
      return nodes.first < 0 || nodes.first > output.value.node;
    });
    collectives_.push_back({output.name, std::size_t(end - kernel_nodes_.begin())});
  }
  std::ranges::sort(collectives_, {}, &Collective::end);
}

void Program::run_part(std::int64_t i) {
  if (i == 0) enter_carries();
  if (parts_.empty()) {
    std::size_t begin = 0;
    for (std::size_t m = 0; m <= collectives_.size(); ++m) {
      const std::size_t end = m < collectives_.size() ? collectives_[m].end : kernels_.size();
      parts_.push_back(backend_.record(std::span(kernels_).subspan(begin, end - begin)));
      begin = end;
    }
  }
  parts_[std::size_t(i)]();
}

void Program::enter_part(std::int64_t i, const Memory& kept) {
  std::vector<Kernel> copies;
  for (const auto& [arena, place, bytes] : kept_.restored[std::size_t(i)]) {
    copies.push_back(
        backend_.copy(bytes_at(*arena_, arena, bytes), bytes_at(kept, place, bytes), {}));
  }
  backend_.run(copies);
}

void Program::leave_part(std::int64_t i, Memory& kept) {
  std::vector<Kernel> copies;
  for (const auto& [arena, place, bytes] : kept_.saved[std::size_t(i)]) {
    copies.push_back(
        backend_.copy(bytes_at(kept, place, bytes), bytes_at(*arena_, arena, bytes), {}));
  }
  backend_.run(copies);
}

std::int64_t Program::part_of(const std::string& name) const {
  const int node = output(name).node;
  return std::ranges::count_if(graph_.outputs(), [&](const NamedValue& output) {
    return output.name.starts_with(kCollective) && output.value.node < node;
  });
}

}  // namespace keel
