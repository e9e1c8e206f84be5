// The norms of the onednn backend by themselves, for programs that bring threads of their own. They
// need neither oneDNN nor oneTBB: kernels run on the entered executor (blocks.h), or on the
// calling thread.
#pragma once

#include "src/runtime/host_backend.h"

namespace keel::onednn {

// Prepares the ops of src/ops/norm/norm_ops.h in float32, and sums of two values in float32 or
// bf16; refuses every other op.
class NormBackend : public HostBackend {
 public:
  std::string_view name() const override { return "onednn"; }
  std::string description() const override;
  Prepared prepare(const NodeContext& context) override;
};

}  // namespace keel::onednn
