// The null backend runs the whole pipeline and computes nothing: what it takes is overhead.
#pragma once

#include "src/runtime/host_backend.h"

namespace keel::null {

class NullBackend : public HostBackend {
 public:
  std::string_view name() const override { return "null"; }
  std::string description() const override { return "computes nothing"; }
  Prepared prepare(const NodeContext&) override {
    return {[](const Binding&) -> Kernel { return [] {}; }};
  }
};

}  // namespace keel::null
