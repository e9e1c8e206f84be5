// The null backend runs the whole pipeline but computes nothing: its run time is overhead.
#pragma once

#include "src/runtime/host_backend.h"
#include "src/runtime/kernel_table.h"

namespace keel::null {

class NullBackend : public HostBackend {
 public:
  std::string_view name() const override { return "null"; }
  std::string description() const override { return "computes nothing"; }
  Prepared prepare(const NodeContext& context) override {
    std::string refusal = type_refusal(*this, context, floating_kernel(kFloatingTypes));
    if (!refusal.empty()) return refuse(std::move(refusal));
    return {[](const Binding&) -> Kernel { return [] {}; }};
  }
};

}  // namespace keel::null
