// Tables with one entry for each node, or for each value, of a graph.
#pragma once

#include <numeric>
#include <span>
#include <vector>

#include "src/graph/graph.h"

namespace keel {

// Indexed by the node's number. The graph may grow later; its new nodes have no entry.
template <class T>
class PerNode {
 public:
  PerNode() = default;
  explicit PerNode(const Graph& graph, const T& start = {})
      : entries_(static_cast<std::size_t>(graph.size()), start) {}

  decltype(auto) operator[](int node) { return entries_[static_cast<std::size_t>(node)]; }
  decltype(auto) operator[](int node) const { return entries_[static_cast<std::size_t>(node)]; }
  int size() const { return static_cast<int>(entries_.size()); }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }

 private:
  std::vector<T> entries_;
};

// Indexed by the value; the outputs of a node lie side by side in one array.
template <class T>
class PerValue {
 public:
  PerValue() = default;
  explicit PerValue(const Graph& graph, const T& start = {}) : first_(graph) {
    std::size_t count = 0;
    for (int i = 0; i < graph.size(); ++i) {
      first_[i] = count;
      count += graph.node(i).outputs.size();
    }
    entries_.assign(count, start);
  }

  T& operator[](Value v) { return entries_[place(v)]; }
  const T& operator[](Value v) const { return entries_[place(v)]; }
  // The entries of all outputs of a node.
  std::span<const T> of(int node) const {
    const std::size_t first = first_[node];
    const std::size_t end = node + 1 < first_.size() ? first_[node + 1] : entries_.size();
    return {entries_.data() + first, end - first};
  }

 private:
  std::size_t place(Value v) const { return first_[v.node] + static_cast<std::size_t>(v.port); }

  PerNode<std::size_t> first_;  // where the entries of the node begin
  std::vector<T> entries_;
};

}  // namespace keel
