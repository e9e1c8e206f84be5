#include "src/runtime/joined_rows.h"

#include <algorithm>

namespace keel {
namespace {

// What a value is stored in: itself, or what it is a view of.
Value stored_in(const Graph& graph, Value v) {
  while (v.valid() && is_view(graph.node(v.node))) v = graph.node(v.node).inputs[0];
  return v;
}

class Search {
 public:
  Search(const Graph& graph, std::span<const Prepared> prepared)
      : graph_(graph), prepared_(prepared) {
    for (int i = 0; i < graph.size(); ++i) {
      if (prepared[std::size_t(i)].bind) kernels_.push_back(i);
    }
  }

  std::vector<JoinedRows> run() {
    std::vector<JoinedRows> found;
    std::size_t free = 0;  // the first kernel that is in no group yet
    for (std::size_t k = 0; k < kernels_.size(); ++k) {
      if (!goes_through_rows(k)) continue;
      elements_ = elements(k);
      row_ = of(k).row;
      first_ = end_ = k;
      ++end_;
      while (first_ > free && takes_before(first_ - 1)) --first_;
      while (end_ < kernels_.size() && takes_after(end_)) ++end_;
      if (end_ - first_ > 1) found.push_back({kernels_[first_], kernels_[k], kernels_[end_ - 1]});
      free = end_;
    }
    return found;
  }

 private:
  const Prepared& of(std::size_t kernel) const { return prepared_[std::size_t(kernels_[kernel])]; }
  std::int64_t elements(std::size_t kernel) const {
    return graph_.node(kernels_[kernel]).outputs[0].shape.elements();
  }
  // One row is no reason to join, and its gain could be mistaken for x.
  bool goes_through_rows(std::size_t kernel) const {
    return of(kernel).bind_rows && of(kernel).row < elements(kernel);
  }
  bool works_on_elements(std::size_t kernel) const {
    return of(kernel).bind_elements && elements(kernel) == elements_ && row_ % of(kernel).row == 0;
  }
  bool takes_before(std::size_t kernel) const {
    return works_on_elements(kernel) && hands_rows(kernel, kernel + 1, end_);
  }
  bool takes_after(std::size_t kernel) const {
    if (!works_on_elements(kernel)) return false;
    bool is_read = false;
    for (std::size_t k = first_; k < end_; ++k) {
      if (!reads_rows(kernel, k)) return false;
      is_read |= reads(kernel, k);
    }
    return is_read;
  }
  // Whether the kernels [begin, end) read the result of `kernel`, and all by rows.
  bool hands_rows(std::size_t kernel, std::size_t begin, std::size_t end) const {
    bool is_read = false;
    for (std::size_t k = begin; k < end; ++k) {
      if (!reads_rows(k, kernel)) return false;
      is_read |= reads(k, kernel);
    }
    return is_read;
  }
  bool reads(std::size_t reader, std::size_t writer) const {
    return std::ranges::any_of(graph_.node(kernels_[reader]).inputs, [&](Value v) {
      return stored_in(graph_, v).node == kernels_[writer];
    });
  }
  // Whether all that the reader has from the writer is as large as x, so that it is read by rows.
  bool reads_rows(std::size_t reader, std::size_t writer) const {
    return std::ranges::all_of(graph_.node(kernels_[reader]).inputs, [&](Value v) {
      const Value stored = stored_in(graph_, v);
      return stored.node != kernels_[writer] || (graph_.shape(v).elements() == elements_ &&
                                                 graph_.shape(stored).elements() == elements_);
    });
  }

  const Graph& graph_;
  std::span<const Prepared> prepared_;
  std::vector<int> kernels_;  // the nodes that run one, in order
  // The group that is being found: kernels [first_, end_), and the sizes of its norm.
  std::size_t first_ = 0, end_ = 0;
  std::int64_t elements_ = 0, row_ = 0;
};

}  // namespace

std::vector<JoinedRows> find_joined_rows(const Graph& graph, std::span<const Prepared> prepared) {
  return Search(graph, prepared).run();
}

Kernel join_rows(const JoinedRows& joined, std::span<const Prepared> prepared,
                 std::span<Binding> bindings) {
  const auto binding = [&](int node) -> Binding& {
    return bindings[std::size_t(node - joined.first)];
  };
  Neighbours neighbours;
  for (int i = joined.first; i <= joined.last; ++i) {
    const Prepared& p = prepared[std::size_t(i)];
    if (!p.bind || i == joined.norm) continue;
    (i < joined.norm ? neighbours.before : neighbours.after).push_back(p.bind_elements(binding(i)));
  }
  // A result that the group reads at once is not stored past the caches.
  binding(joined.norm).is_read_next = !neighbours.after.empty();
  return prepared[std::size_t(joined.norm)].bind_rows(binding(joined.norm), neighbours);
}

}  // namespace keel
