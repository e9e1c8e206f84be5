#include "src/runtime/program_memory.h"

#include <algorithm>
#include <string>
#include <vector>

#include "src/runtime/program.h"

namespace keel {
namespace {

template <class T>
std::int64_t held(const std::vector<T>& values) {
  return std::int64_t(values.capacity() * sizeof(T));
}

// Short texts lie in the string itself.
std::int64_t held(const std::string& text) {
  const bool is_inside = text.capacity() <= std::string().capacity();
  return is_inside ? 0 : std::int64_t(text.capacity()) + 1;
}

// A hash table keeps a link, a hash and a bucket for each of its entries.
template <class Entry>
constexpr std::int64_t kTableEntry = sizeof(Entry) + 3 * sizeof(void*);

std::int64_t bytes_of(const Node& node) {
  const std::int64_t constant = node.constant ? node.constant->bytes() : 0;
  return std::int64_t(sizeof(Node)) + held(node.name) + held(node.inputs) + held(node.outputs) +
         constant;
}

}  // namespace

std::int64_t bytes_of(const Graph& graph) {
  using Name = std::pair<std::string, std::pair<int, int>>;
  std::int64_t bytes = 0;
  for (int i = 0; i < graph.size(); ++i) {
    bytes += bytes_of(graph.node(i)) + kTableEntry<Name> + held(graph.node(i).name);
  }
  for (const NamedValue& output : graph.outputs()) {
    bytes += std::int64_t(sizeof(output)) + held(output.name);
  }
  constexpr std::int64_t kUpdate = sizeof(Update) + kTableEntry<std::pair<int, Value>>;
  return bytes + std::ssize(graph.updates()) * kUpdate;
}

std::int64_t bytes_of(const Binding& binding) {
  return std::int64_t(sizeof(Binding)) + held(binding.inputs) + held(binding.outputs);
}

ProgramMemory& operator+=(ProgramMemory& sum, const ProgramMemory& program) {
  sum.graph += program.graph;
  sum.plan += program.plan;
  sum.kernels += program.kernels;
  sum.constants += program.constants;
  sum.arena = std::max(sum.arena, program.arena);
  return sum;
}

ProgramMemory Program::memory() const {
  std::int64_t values = 0;
  for (int i = 0; i < graph_.size(); ++i) values += std::ssize(graph_.node(i).outputs);
  const std::int64_t nodes = graph_.size();
  const std::int64_t plan = values * std::int64_t(sizeof(Location)) +
                            nodes * std::int64_t(sizeof(std::size_t) + sizeof(std::int64_t)) +
                            held(plan_.copies);
  return {.graph = bytes_of(graph_),
          .plan = plan,
          .kernels = kernel_bytes_ + held(kernels_) + held(kernel_nodes_),
          .constants = constants_.memory() ? constants_.memory()->bytes() : 0,
          .arena = plan_.arena_bytes};
}

}  // namespace keel
