// Dropout. The backward is the same map, applied to dy with the same mask.
#include "src/ops/dropout.h"

#include "backends/reference/kernels/kernels.h"

namespace keel::reference {
namespace {

// y = keep ? x / (1 - p) : 0.
void run(const Binding& b, const DropoutAttrs& attrs) {
  const Vector x = vector(b.inputs[0]);
  const auto step = static_cast<std::uint32_t>(*b.inputs[1].as<std::int32_t>());
  const Philox random(static_cast<std::uint64_t>(attrs.seed),
                      static_cast<std::uint32_t>(attrs.stream), step);
  Vector y = vector(b.outputs[0]);
  for (Eigen::Index e = 0; e < x.size(); ++e) {
    const bool keep = random.uniform(static_cast<std::uint64_t>(e)) >= attrs.p;
    y[e] = keep ? x[e] / (1 - attrs.p) : 0;
  }
}

}  // namespace

Prepared prepare_dropout(const NodeContext& context) {
  const auto attrs = context.attrs<DropoutAttrs>();
  return kernel_of([=](const Binding& b) { run(b, attrs); });
}

}  // namespace keel::reference
