#include "frontend/compare/walk/node_reference.h"

#include <algorithm>
#include <utility>

#include "src/core/bf16.h"

namespace keel::compare {
namespace {

// In float64 where they are floating.
class Widened {
 public:
  explicit Widened(std::span<const Tensor* const> values) {
    owned_.reserve(values.size());
    for (const Tensor* v : values) {
      const bool is_narrow = v != nullptr && is_floating(v->dtype()) && v->dtype() != DType::kF64;
      all_.push_back(is_narrow ? &owned_.emplace_back(v->to(DType::kF64)) : v);
    }
  }
  std::span<const Tensor* const> all() const { return all_; }

 private:
  std::vector<Tensor> owned_;
  std::vector<const Tensor*> all_;
};

}  // namespace

NodeResult reference_node(Backend& reference, const Graph& graph, int index,
                          std::span<const Tensor* const> inputs, const ReferenceOptions& options) {
  const Widened widened(inputs);
  // Bounds say how far results are apart before they are rounded, and where a tie is near.
  Node node = graph.node(index);
  const bool is_bf16 = std::exchange(node.is_bf16, false);
  if (is_bf16) node.outputs[0].dtype = DType::kF32;
  NodeRun run = run_node(reference, {graph, node}, widened.all());
  check(run.refusal.empty(), ErrorKind::kBackendMissing, "{}: {}", node.name, run.refusal);
  NodeResult result{std::move(run.outputs), {}};
  if (options.wants_bounds && !is_view(graph.node(index))) {
    result.bounds = node_bounds({reference, graph, index, widened.all(), result.outputs,
                                 options.kernels, options.input_errors});
  }
  if (is_bf16) {
    const auto y = result.outputs[0].as<double>();
    std::ranges::transform(y, y.begin(), rounded_to_bf16);
  }
  return result;
}

Tensor committed(Backend& backend, const Tensor& leaf, const Tensor& next) {
  const auto to = backend.allocate(leaf.bytes()), from = backend.allocate(next.bytes());
  to->upload(0, leaf.data(), leaf.bytes());
  from->upload(0, next.data(), next.bytes());
  const Kernel copy =
      backend.copy({to->address(), leaf.type()}, {from->address(), next.type()}, {});
  backend.run({&copy, 1});
  Tensor result(leaf.type());
  to->download(0, result.data(), result.bytes());
  return result;
}

Errors measured(std::span<const Tensor> got, std::span<const Tensor> expected,
                const NodeBounds& bounds) {
  Measure measure;
  for (std::size_t port = 0; port < got.size(); ++port) {
    const bool is_compared = port < bounds.largest.size();
    measure.add(int(port), got[port], expected[port], is_compared ? &bounds[port] : nullptr);
    if (port < bounds.usual.size()) {
      measure.add_strict(got[port], expected[port], bounds.usual[port], bounds.deviation[port]);
    }
  }
  return measure.result();
}

}  // namespace keel::compare
