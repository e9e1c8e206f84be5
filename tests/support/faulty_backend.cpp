#include "tests/support/faulty_backend.h"

#include <algorithm>

#include "backends/backends.h"

namespace keel::test {

FaultyBackend::FaultyBackend(Mistake mistake)
    : judge_(make_backend("reference")), mistake_(std::move(mistake)) {}

Prepared FaultyBackend::prepare(const NodeContext& context) {
  Prepared prepared = judge_->prepare(context);
  if (context.node.op->name != mistake_.op) return prepared;
  ++nodes_;
  prepared.bind = [bind = prepared.bind, mistake = mistake_](const Binding& b) -> Kernel {
    const auto input = std::ranges::find_if(
        b.inputs, [](const TensorRef& t) { return t && t.type.dtype == DType::kF64; });
    const double* source = input->as<double>();
    double* target = b.outputs[std::size_t(mistake.output)].as<double>();
    return [kernel = bind(b), source, target, size = mistake.size] {
      const double error = size * *source;  // read first: a gradient may take its place
      kernel();
      *target += error;
    };
  };
  return prepared;
}

}  // namespace keel::test
